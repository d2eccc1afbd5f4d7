package adapters_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/redisstore"
)

// go-redis writes a line for each connection that it can't make.
func init() { redis.SetLogger(unheard{}) }

type unheard struct{}

func (unheard) Printf(context.Context, string, ...any) {}

// network is between a bubble's clients and their server, and can be cut.
type network struct {
	serve func(net.Conn) // whoever is at the other end
	mu    sync.Mutex
	away  bool
	conns []net.Conn
}

// miniNetwork leads to a miniredis.
func miniNetwork(t *testing.T) *network {
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	return &network{serve: func(c net.Conn) {
		to, err := m.Dial()
		if err != nil {
			_ = c.Close()
			return
		}
		go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
		go func() { _, _ = io.Copy(c, to); _ = c.Close() }()
	}}
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	n.conns = append(n.conns, near, far)
	n.serve(far)
	return near, nil
}

// set cuts all connections, and refuses new ones, or allows them.
func (n *network) set(away bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.away = away
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.conns = nil
}

// store is one in the Redis at the end of the network.
func (n *network) store(t *testing.T) store.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:0", Dialer: n.dial, DialerRetries: 1, MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() {
		n.set(true)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// silent takes what comes and never answers.
func silent(c net.Conn) { go func() { _, _ = io.Copy(io.Discard, c) }() }

// stubborn answers every script with an error, and counts them.
func stubborn(reply string, scripts *atomic.Int64) func(net.Conn) {
	return func(c net.Conn) {
		go func() {
			for r := bufio.NewReader(c); ; {
				name, err := command(r)
				if err != nil {
					return
				}
				answer := "+OK\r\n"
				switch {
				case strings.HasPrefix(name, "EVAL"):
					scripts.Add(1)
					answer = "-" + reply + "\r\n"
				case name == "HELLO":
					answer = "-ERR unknown command\r\n"
				}
				if _, err := io.WriteString(c, answer); err != nil {
					return
				}
			}
		}()
	}
}

// command is the name of the next command, whose arguments are skipped.
func command(r *bufio.Reader) (name string, err error) {
	count := func() (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := count()
	for i := 0; i < n && err == nil; i++ {
		var size int
		if size, err = count(); err != nil {
			break
		}
		text := make([]byte, size+2)
		if _, err = io.ReadFull(r, text); i == 0 {
			name = strings.ToUpper(string(text[:size]))
		}
	}
	return name, err
}

// guard is a store as programs have it, by what they do while it is away.
func guard(s store.Store, policy string, cooldown time.Duration, failed func(context.Context, error)) store.Store {
	s = breaker.New(store.Timeout(s, 50*time.Millisecond), breaker.Config{Cooldown: cooldown})
	if policy == "open" {
		s = store.FailOpen(s, failed)
	}
	return s
}

// away is a server whose store may be away.
type away struct {
	http.Handler
	ran    atomic.Int64 // the handler did
	failed atomic.Int64 // the observer was told of a failure
}

// newAway limits a path to so many a minute, with a handler that says "handler".
func newAway(t *testing.T, serve func(app) http.Handler, s store.Store, count int64) *away {
	t.Helper()
	a := &away{}
	p, err := algorithms.NewPolicy("p", algorithms.FixedWindow{}, algorithms.PerMinute(count))
	if err != nil {
		t.Fatal(err)
	}
	m, err := middleware.New(middleware.Config{
		Store: s,
		Rules: []middleware.Rule{{Policy: p, Key: perIP}},
		Observe: func(_ context.Context, e middleware.Event) {
			if e.Outcome == middleware.Failed {
				a.failed.Add(1)
			}
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Handler = serve(app{layers: []layer{limit(m)}, routes: []route{{"GET", "/", func(w http.ResponseWriter, _ *http.Request) {
		a.ran.Add(1)
		_, _ = io.WriteString(w, "handler")
	}}}})
	return a
}

// get is one request and its answer.
func (a *away) get(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, ask{}.request(t))
	return w
}

// wantAway holds an answer to the policy: 200 by the handler and nothing invented, or
// 503 and no word of the cause.
func wantAway(t *testing.T, policy string, w *httptest.ResponseRecorder) {
	t.Helper()
	for name := range w.Header() {
		if strings.HasPrefix(strings.ToLower(name), "x-ratelimit") {
			t.Errorf("%s: %s, which nobody decided", name, w.Header().Get(name))
		}
	}
	switch {
	case policy == "open" && (w.Code != http.StatusOK || w.Body.String() != "handler" || w.Header().Get("Retry-After") != ""):
		t.Errorf("open: %d %q %v", w.Code, w.Body, w.Header())
	case policy == "closed" && (w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" ||
		strings.Contains(w.Body.String(), "redis") || strings.Contains(w.Body.String(), "handler")):
		t.Errorf("closed: %d %q %v", w.Code, w.Body, w.Header())
	}
}
