package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store/memstore"
)

// Numbers and addresses that documentation may use.
const (
	alice = "+12025550142"
	bob   = "+12025550143"
	home  = "203.0.113.7"
	away  = "198.51.100.9"
)

// message is what a fakeSender was given.
type message struct{ phone, code string }

// fakeSender keeps what it is given, or fails.
type fakeSender struct {
	mu   sync.Mutex
	sent []message
	err  error
}

func (s *fakeSender) Send(_ context.Context, phone, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.sent = append(s.sent, message{phone, code})
	}
	return s.err
}

// fakeClock stands still until it is moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a server under test with all that it depends on.
type bench struct {
	t       *testing.T
	clock   *fakeClock
	sender  *fakeSender
	log     *strings.Builder
	codes   *codes
	handler http.Handler
}

// newBench makes a server that believes the named proxies.
func newBench(t *testing.T, proxies ...string) *bench {
	t.Helper()
	return newBenchWith(t, func(*config) {}, proxies...)
}

// newBenchWith makes a server with a config that is changed first.
func newBenchWith(t *testing.T, change func(*config), proxies ...string) *bench {
	t.Helper()
	b := &bench{
		t:      t,
		clock:  &fakeClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		sender: &fakeSender{},
		log:    &strings.Builder{},
	}
	b.codes = &codes{newKey(), newMemoryVault(maxCodes, b.clock.Now)}
	var trust keyfunc.Trust
	if len(proxies) > 0 {
		var err error
		if trust, err = keyfunc.TrustProxies(proxies...); err != nil {
			t.Fatal(err)
		}
	}
	c := config{
		store:   memstore.New(memstore.Config{Clock: b.clock.Now}),
		trust:   trust,
		region:  "US",
		sender:  b.sender,
		codes:   b.codes,
		logger:  slog.New(slog.NewTextHandler(b.log, nil)),
		baseURL: "http://127.0.0.1:8080",
	}
	change(&c)
	s, err := newServer(c)
	if err != nil {
		t.Fatal(err)
	}
	b.handler = s.handler()
	return b
}

// do sends a request with a body of JSON. Header pairs overwrite.
func (b *bench) do(method, path, ip, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = ip + ":40000"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

// send asks for a code and wants a status.
func (b *bench) send(want int, ip, phone string, headers ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	w := b.do("POST", "/api/codes", ip, `{"phone":`+strconv.Quote(phone)+`}`, headers...)
	if w.Code != want {
		b.t.Errorf("code for %q from %s: status %d, want %d; body %s", phone, ip, w.Code, want, w.Body)
	}
	return w
}

// try checks a code and wants a status.
func (b *bench) try(want int, ip, phone, code string) *httptest.ResponseRecorder {
	b.t.Helper()
	w := b.do("POST", "/api/verifications", ip, `{"phone":`+strconv.Quote(phone)+`,"code":`+strconv.Quote(code)+`}`)
	if w.Code != want {
		b.t.Errorf("try %q for %q: status %d, want %d; body %s", code, phone, w.Code, want, w.Body)
	}
	return w
}

// wantSent wants so many messages to have left.
func (b *bench) wantSent(n int) {
	b.t.Helper()
	if got := len(b.sender.sent); got != n {
		b.t.Errorf("%d messages sent, want %d", got, n)
	}
}

// lastCode is the code of the last message.
func (b *bench) lastCode() string {
	b.t.Helper()
	if len(b.sender.sent) == 0 {
		b.t.Fatal("no message was sent")
	}
	return b.sender.sent[len(b.sender.sent)-1].code
}

// other is a code that is not this one.
func other(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

// wantHeader wants the value of a header; "" wants it absent.
func wantHeader(t *testing.T, w *httptest.ResponseRecorder, name, want string) {
	t.Helper()
	if got := w.Header().Get(name); got != want {
		t.Errorf("%s = %q, want %q", name, got, want)
	}
}

// together calls f n times at once and counts the statuses that it returns.
func together(n int, f func() int) map[int]int {
	statuses := make(chan int, n)
	start := make(chan struct{})
	for range n {
		go func() {
			<-start
			statuses <- f()
		}()
	}
	close(start)
	counts := map[int]int{}
	for range n {
		counts[<-statuses]++
	}
	return counts
}

// post sends JSON to a server and gives the status, or 0 for an error.
func post(c *http.Client, url, body string) int {
	resp, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if errors.Join(err, resp.Body.Close()) != nil {
		return 0
	}
	return resp.StatusCode
}
