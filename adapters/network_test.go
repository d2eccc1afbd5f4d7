package adapters_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/store"
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
	dials int
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
	n.dials++
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

// dialed is how often clients asked for a connection.
func (n *network) dialed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials
}

// store is one in the Redis at the end of the network, with the client that the
// README recommends.
func (n *network) store(t *testing.T) store.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:0", Dialer: n.dial, DialerRetries: 1, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() {
		n.set(true)
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		// After as many errors as its pool has places, go-redis tries a connection each
		// second, and sees only then that it is closed.
		time.Sleep(time.Second)
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
