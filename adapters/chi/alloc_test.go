//go:build !race

// With the race detector sync.Pool drops items on purpose.

package chiadapter_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	chiadapter "github.com/weirgo/weir/adapters/chi"
	"github.com/weirgo/weir/keyfunc"
)

// The look at the routes allocates nothing, but for the pattern of several
// routers, which chi too puts together anew for each request.
func TestAllocations(t *testing.T) {
	run := func(limit func(http.Handler) http.Handler, target string) float64 {
		r := chi.NewRouter()
		r.Use(limit)
		r.Get("/plain", ok204)
		r.Get("/one/{id}", ok204)
		r.Route("/sub", func(r chi.Router) { r.Get("/{id}", ok204) })
		if strings.HasPrefix(target, "/in/") {
			r = chi.NewRouter()
			r.Route("/in", func(r chi.Router) {
				r.Use(limit)
				r.Get("/{id}", ok204)
			})
		}
		req := httptest.NewRequest("GET", target, nil)
		w := httptest.NewRecorder()
		return testing.AllocsPerRun(1000, func() { r.ServeHTTP(w, req) })
	}
	m := limiter(t, 1e6, keyfunc.Const("k"))
	for target, most := range map[string]float64{"/plain": 0, "/one/1": 0, "/sub/1": 4, "/in/1": 4} {
		if extra := run(chiadapter.Middleware(m), target) - run(m.Handler, target); extra > most {
			t.Errorf("%s: %v more allocations than without the route; want %v", target, extra, most)
		}
	}
}
