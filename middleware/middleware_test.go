package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func policy(t testing.TB, name string, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	return policyOf(t, name, algorithms.GCRA{}, l)
}

func policyOf(t testing.TB, name string, a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newMiddleware(t testing.TB, c middleware.Config) *middleware.Middleware {
	t.Helper()
	m, err := middleware.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// limiter is a middleware of one rule for each limit, all on one key.
func limiter(t testing.TB, clock *storetest.Clock, limits ...algorithms.Limit) *middleware.Middleware {
	t.Helper()
	c := middleware.Config{Store: memstore.New(memstore.Config{Clock: clock.Now})}
	for i, l := range limits {
		c.Rules = append(c.Rules, middleware.Rule{Policy: policy(t, "p"+string(rune('0'+i)), l), Key: keyfunc.Const("k")})
	}
	return newMiddleware(t, c)
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })

func serve(h http.Handler, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func accept(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", value) }
}

// failing is a store that is away.
type failing struct{ store.Store }

var errAway = errors.New("dial tcp 192.0.2.1:6379: secret detail")

func (failing) Validate(...*algorithms.Policy) error { return nil }

func (failing) Take(context.Context, []store.Charge, []algorithms.Result) error { return errAway }

func TestSkip(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerMinute(1)), Key: keyfunc.Const("k")}},
		Skip:  func(r *http.Request) bool { return r.Method == "OPTIONS" },
	})
	options := func(r *http.Request) { r.Method = "OPTIONS" }
	for range 3 {
		if w := serve(m.Handler(ok), options); w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "" {
			t.Errorf("skipped: %d %v", w.Code, w.Header())
		}
	}
	r := httptest.NewRequest("OPTIONS", "/", nil)
	if d, err := m.Check(r); err != nil || d.Refused != -1 || d.Results != nil {
		t.Errorf("Check of a skipped request: %+v, %v", d, err)
	}
	if w := serve(m.Handler(ok)); w.Code != 200 {
		t.Errorf("counted after all: %d", w.Code)
	}
}

// A handler may use what Handler is made of.
func TestCheckCountsEachTime(t *testing.T) {
	m := limiter(t, storetest.NewClock(), algorithms.PerMinute(2))
	for i, refused := range []int{-1, -1, 0} {
		d, err := m.Check(httptest.NewRequest("GET", "/", nil))
		if err != nil || d.Refused != refused || len(d.Charges) != 1 || d.Charges[0].Key != "k" {
			t.Errorf("call %d: %+v, %v", i+1, d, err)
		}
	}
}

func TestFromContextOutside(t *testing.T) {
	if d, ok := middleware.FromContext(context.Background()); ok || d.Refused != -1 {
		t.Errorf("%+v, %v", d, ok)
	}
}

// A request that a handler makes with the context of its own is the same request.
func TestSameContextCountsOnce(t *testing.T) {
	var h http.Handler
	served := 0
	h = limiter(t, storetest.NewClock(), algorithms.PerHour(5)).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		served++
		for range 20 {
			if r.URL.Path == "/batch" {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(r.Context(), "GET", "/", nil))
			}
		}
	}))
	batch := func(r *http.Request) { r.URL.Path = "/batch" }
	if w := serve(h, batch); served != 21 || w.Header().Get("X-RateLimit-Remaining") != "4" {
		t.Errorf("%d served, %v", served, w.Header())
	}
}
