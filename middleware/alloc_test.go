//go:build !race

// With the race detector sync.Pool drops items on purpose.

package middleware_test

import (
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

func TestAllocations(t *testing.T) {
	one := []middleware.Rule{{Policy: policy(t, "p", algorithms.PerSecond(1_000_000)), Key: keyfunc.IP(keyfunc.Trust{})}}
	var four []middleware.Rule
	for _, name := range []string{"a", "b", "c", "d"} {
		four = append(four, middleware.Rule{Policy: policy(t, name, algorithms.PerSecond(1_000_000)), Key: keyfunc.Const("k")})
	}
	for _, c := range []struct {
		name   string
		config middleware.Config
		most   float64
	}{
		{"a rule by address: key, decision in the context, headers", middleware.Config{Rules: one}, 6},
		{"four rules and a ban, with keys at hand", middleware.Config{Rules: four, Ban: threeStrikes(t)}, 5},
	} {
		c.config.Store = memstore.New(memstore.Config{})
		passed := 0
		h := newMiddleware(t, c.config).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if _, ok := middleware.FromContext(r.Context()); ok {
				passed++
			}
		}))
		r := httptest.NewRequest("GET", "/", nil)
		w := &nullWriter{http.Header{}}
		n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) })
		if n > c.most || passed != 1001 || len(w.h) != 3 {
			t.Errorf("%s: %v allocations, %d passed, headers %v", c.name, n, passed, w.h)
		}
		t.Logf("%v allocations a request of %s", n, c.name)
	}
}
