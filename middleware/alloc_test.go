//go:build !race

// With the race detector sync.Pool drops items on purpose.

package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// nullWriter is a ResponseWriter that allocates nothing by itself.
type nullWriter struct{ h http.Header }

func (w *nullWriter) Header() http.Header         { return w.h }
func (w *nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w *nullWriter) WriteHeader(int)             {}

// What a request allocates, at most: of which one is the node, one its request, one
// the key by address. A refusal adds the body and what it says.
func TestAllocations(t *testing.T) {
	draft, both := middleware.Draft11, middleware.XRateLimit|middleware.Draft11
	for _, c := range []struct {
		headers          middleware.Headers
		allowed, refused float64
	}{
		{middleware.Headers{}, 5, 10},
		{middleware.Headers{ResetAs: middleware.UnixSeconds}, 5, 10},
		{middleware.Headers{ResetAs: middleware.RFC3339}, 5, 10},
		{middleware.Headers{Dialect: draft}, 5, 10},
		{middleware.Headers{Dialect: draft, PartitionSecret: make([]byte, 16)}, 5, 10},
		{middleware.Headers{Dialect: both}, 7, 12},
		{middleware.Headers{Expose: true}, 6, 11},
		{middleware.Headers{When: middleware.OnRefusal}, 3, 10},
		{middleware.Headers{When: middleware.Never}, 3, 8},
	} {
		for rules := 1; rules <= 4; rules++ { // more rules cost no more
			for _, kind := range []string{"", "application/json"} {
				for _, ban := range []*algorithms.Policy{nil, threeStrikes(t)} {
					allowed := allocations(t, c.headers, rules, ban, kind, algorithms.PerSecond(1_000_000))
					refused := allocations(t, c.headers, rules, ban, kind, algorithms.PerHour(1))
					if allowed > c.allowed || refused > c.refused {
						t.Errorf("%+v, %d rules, ban %t, %q: %v allowed, %v refused; want %v and %v", c.headers, rules, ban != nil, kind, allowed, refused, c.allowed, c.refused)
					}
				}
			}
		}
	}
}

func allocations(t *testing.T, headers middleware.Headers, rules int, ban *algorithms.Policy, kind string, l algorithms.Limit) float64 {
	t.Helper()
	c := middleware.Config{Store: memstore.New(memstore.Config{}), Headers: headers, Ban: ban}
	for i := range rules {
		rule := middleware.Rule{Policy: policy(t, fmt.Sprint("p", i), l), Key: keyfunc.Const("k")}
		if i == 0 {
			rule.Key = keyfunc.IP(keyfunc.Trust{})
		}
		c.Rules = append(c.Rules, rule)
	}
	passed, runs := 0, 0
	h := newMiddleware(t, c).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, ok := middleware.FromContext(r.Context()); ok {
			passed++
		}
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", kind)
	w := &nullWriter{http.Header{}}
	n := testing.AllocsPerRun(100, func() {
		runs++
		clear(w.h)
		h.ServeHTTP(w, r)
	})
	if want := map[int64]int{1: 1, 1_000_000: runs}[l.Count]; passed != want {
		t.Errorf("%d of %d passed, want %d", passed, runs, want)
	}
	return n
}
