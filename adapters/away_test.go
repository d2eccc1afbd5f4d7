package adapters_test

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/resilient"
)

// policies are what programs do while a store is away. The first two let everything
// pass, the next two nothing; the last two count in memory.
var policies = []string{"open", "open by chain", "closed", "closed without decorators", "memory", "memory by chain"}

func opens(policy string) bool { return strings.HasPrefix(policy, "open") }

// away is a server whose store may be away.
type away struct {
	http.Handler
	store  store.Store // behind what is around it
	policy *algorithms.Policy
	ran    atomic.Int64 // the handler did

	mu       sync.Mutex
	failures []error // that somebody was told of
}

// guarded is how a server of tests guards its store.
type guarded struct {
	policy   string
	count    int64         // requests a minute
	timeout  time.Duration // 0 means 50 ms
	cooldown time.Duration // 0 means 1 s
}

// newAway limits a path, with a handler that says "handler".
func newAway(t *testing.T, serve func(app) http.Handler, s store.Store, c guarded) *away {
	t.Helper()
	a := &away{}
	var err error
	if a.policy, err = algorithms.NewPolicy("p", algorithms.FixedWindow{}, algorithms.PerMinute(c.count)); err != nil {
		t.Fatal(err)
	}
	failed := func(_ context.Context, err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.failures = append(a.failures, err)
	}
	a.store = c.guard(s, failed)
	m, err := middleware.New(middleware.Config{
		Store: a.store,
		Rules: []middleware.Rule{{Policy: a.policy, Key: perIP}},
		Observe: func(ctx context.Context, e middleware.Event) {
			if e.Outcome == middleware.Failed {
				failed(ctx, e.Err)
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

// guard is a store as programs have it.
func (c guarded) guard(s store.Store, failed func(context.Context, error)) store.Store {
	c.timeout, c.cooldown = cmp.Or(c.timeout, 50*time.Millisecond), cmp.Or(c.cooldown, time.Second)
	b := breaker.Config{Cooldown: c.cooldown}
	broken := breaker.New(store.Timeout(s, c.timeout), b)
	switch c.policy {
	case "open":
		return store.FailOpen(broken, failed)
	case "open by chain":
		return resilient.New(s, resilient.Config{FailOpen: true, Timeout: c.timeout, Breaker: b, Failed: failed})
	case "closed":
		return broken
	case "closed without decorators":
		return s
	case "memory":
		return store.Fallback(broken, memstore.New(memstore.Config{}), failed)
	case "memory by chain":
		return resilient.New(s, resilient.Config{Replicas: 1, Timeout: c.timeout, Breaker: b, Failed: failed})
	}
	panic(c.policy)
}

// told gives the failures of which anybody was told since the last call.
func (a *away) told() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.failures = nil }()
	return a.failures
}

// get is one request and its answer.
func (a *away) get(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	a.ServeHTTP(w, ask{}.request(t))
	return w
}

// wantStatuses wants these, which were counted.
func (a *away) wantStatuses(t *testing.T, want ...int) {
	t.Helper()
	for i, status := range want {
		w := a.get(t)
		if w.Code != status {
			t.Errorf("request %d: %d, want %d", i, w.Code, status)
		}
		wantRateHeaders(t, w.Header(), "")
	}
}

// wantAway wants n answers as the policy has them: 200 by the handler and nothing
// invented, or 503 and no word of the cause; and somebody told of each.
func (a *away) wantAway(t *testing.T, policy string, n int) {
	t.Helper()
	ran, _ := a.ran.Load(), a.told()
	for range n {
		wantAway(t, policy, a.get(t))
	}
	if opens(policy) {
		ran += int64(n)
	}
	if told := a.told(); len(told) != n || a.ran.Load() != ran {
		t.Errorf("%d requests, told of %v; the handler ran %d times, want %d", n, told, a.ran.Load(), ran)
	}
}

func wantAway(t *testing.T, policy string, w *httptest.ResponseRecorder) {
	t.Helper()
	for name := range w.Header() {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			t.Errorf("%s: %s, which nobody decided", name, w.Header().Get(name))
		}
	}
	status, wait, body := http.StatusServiceUnavailable, "1", "Service Unavailable. Try again in 1 second.\n"
	if opens(policy) {
		status, wait, body = http.StatusOK, "", "handler"
	}
	if w.Code != status || w.Header().Get("Retry-After") != wait || w.Body.String() != body {
		t.Errorf("%s: %d %q %v", policy, w.Code, w.Body, w.Header())
	}
}
