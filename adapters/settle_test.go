package adapters_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/weirgo/weir/middleware"
)

// outcomes makes a limiter whose Refund is asked for the statuses.
func outcomes(t *testing.T) (*limiter, *[]int) {
	t.Helper()
	told := new([]int)
	return newLimiter(t, 100, perIP, func(c *middleware.Config) {
		c.Rules[0].Refund = func(code int) bool { *told = append(*told, code); return false }
		c.Skip = func(r *http.Request) bool { return r.URL.Path == "/skipped" }
	}), told
}

// recovers answers 500 where what is in it panics.
var recovers = layer{recovered, recovered, gin.RecoveryWithWriter(io.Discard)}

func recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(500)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// Each framework tells the status that its client sees, once for a request, however
// often the limiter is mounted, and whatever is between.
func TestSettle(t *testing.T) {
	late := plain(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			if r.URL.Path == "/late" {
				w.WriteHeader(503)
			}
		})
	})
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, layers := range map[string]func(layer) []layer{
			"once":              func(l layer) []layer { return []layer{recovers, l, late} },
			"twice":             func(l layer) []layer { return []layer{recovers, l, late, l, l} },
			"recovered in it":   func(l layer) []layer { return []layer{l, recovers, late} },
			"recovered between": func(l layer) []layer { return []layer{l, late, recovers, l} },
		} {
			t.Run(name, func(t *testing.T) {
				l, told := outcomes(t)
				var h http.Handler
				status := func(code int) http.HandlerFunc {
					return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
				}
				h = serve(app{layers: layers(limit(l.Middleware)), routes: []route{
					{"GET", "/nothing", fine},
					{"GET", "/late", fine},
					{"GET", "/204", status(204)},
					{"GET", "/404", status(404)},
					{"GET", "/body", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusServiceUnavailable) }},
					{"GET", "/panics", func(http.ResponseWriter, *http.Request) { panic("on purpose") }},
					{"GET", "/skipped", status(500)},
					{"GET", "/batch", func(_ http.ResponseWriter, r *http.Request) { // of the same charge
						ctx := context.WithValue(r.Context(), chi.RouteCtxKey, nil) // or chi serves the same route again
						for _, path := range []string{"/404", "/panics", "/204"} {
							h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", path, nil))
						}
					}},
				}})
				for path, code := range map[string]int{
					"/nothing": 200, "/late": 503, "/204": 204, "/404": 404, "/body": 503, "/panics": 500, "/nowhere": 404, "/batch": 200,
				} {
					if path == "/nowhere" && strings.Contains(t.Name(), "/nethttp/") { // there the limiter is in the routes
						continue
					}
					*told = nil
					l.wantStatuses(t, h, []int{code}, "GET "+path)
					if !slices.Equal(*told, []int{code}) {
						t.Errorf("%s: Refund was asked for %d, want %d", path, *told, code)
					}
				}
				*told = nil
				l.wantStatuses(t, h, []int{500}, "GET /skipped")
				if *told != nil {
					t.Errorf("skipped: Refund was asked for %d", *told)
				}
			})
		}
	})
}

// A panic goes on as it came.
func TestSettleAfterPanic(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l, told := outcomes(t)
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}}}})
		defer func() {
			if got := recover(); got != http.ErrAbortHandler || !slices.Equal(*told, []int{500}) {
				t.Errorf("it panics with %v, and Refund was asked for %d", got, *told)
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), ask{}.request(t))
	})
}
