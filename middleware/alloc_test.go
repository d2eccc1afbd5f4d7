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
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerSecond(1_000_000)), Key: keyfunc.IP(keyfunc.Trust{})}},
	})
	passed := 0
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, ok := middleware.FromContext(r.Context()); ok {
			passed++
		}
	}))
	r := httptest.NewRequest("GET", "/", nil)
	w := &nullWriter{http.Header{}}
	n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) })
	if n > 6 || passed != 1001 || len(w.h) != 3 {
		t.Errorf("%v allocations, %d passed, headers %v", n, passed, w.h)
	}
	t.Logf("%v allocations a request: key, decision in the context, headers", n)
}
