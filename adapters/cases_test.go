package adapters_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chiadapter "github.com/weirgo/weir/adapters/chi"
	ginadapter "github.com/weirgo/weir/adapters/gin"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
)

// TestCases holds the adapters, and net/http beside them, to cases from other
// projects. Each is named by its id.
func TestCases(t *testing.T) {
	t.Run("IP-01", ip01)
	t.Run("IP-02", ip02)
	t.Run("IP-03", ip03)
	t.Run("IP-04", ip04)
	t.Run("IP-06", ip06)
	t.Run("IP-07", ip07)
	t.Run("IP-08", ip08)
	t.Run("IP-09", ip09)
	t.Run("IP-10", ip10)
	t.Run("IP-11", ip11)
	t.Run("V6-01", v601)
	t.Run("V6-02", v602)
	t.Run("V6-04", v604)
	t.Run("V6-05", v605)
	t.Run("V6-06", v606)
	t.Run("KEY-01", key01)
	t.Run("KEY-03", key03)
	t.Run("KEY-04", key04)
	t.Run("KEY-05", key05)
	t.Run("KEY-06", key06)
	t.Run("KEY-07", key07)
	t.Run("KEY-08", key08)
	t.Run("KEY-09", key09)
	t.Run("KEY-10", key10)
	t.Run("KEY-12", key12)
	t.Run("KEY-13", key13)
	t.Run("KEY-14", key14)
	t.Run("KEY-15", key15)
	t.Run("PATH-01", path01)
	t.Run("PATH-02", path02)
	t.Run("PATH-03", path03)
	t.Run("PATH-05", path05)
	t.Run("PATH-06", path06)
	t.Run("PATH-07", path07)
	t.Run("PATH-08", path08)
	failureCases(t)
	answerCases(t)
}

// answerCases are those about what a client is told, and what a request costs.
func answerCases(t *testing.T) {
	headerCases(t)
	t.Run("HDR-13", hdr13)
	t.Run("HDR-16", hdr16)
	t.Run("MW-01", mw01)
	t.Run("MW-02", mw02)
	t.Run("MW-03", mw03)
	t.Run("MW-04", mw04)
	t.Run("MW-05", mw05)
	t.Run("MW-07", mw07)
	t.Run("MW-08", mw08)
	t.Run("MR-01", mr01)
}

func fine(http.ResponseWriter, *http.Request) {}

func mw01(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 1, perIP)
		later, ran := 0, 0
		h := serve(app{
			layers: []layer{limit(l.Middleware), plain(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { later++; next.ServeHTTP(w, r) })
			})},
			routes: []route{{"GET", "/", func(w http.ResponseWriter, r *http.Request) { ran++; fmt.Fprint(w, "handler") }}},
		})
		second := l.wantStatuses(t, h, []int{200, 429}, "GET /", "GET /")[1]
		if later != 1 || ran != 1 {
			t.Errorf("later middleware ran %d times, the handler %d; want 1 and 1", later, ran)
		}
		if got := second.Body.String(); got != "Too Many Requests. Try again in 59 seconds.\n" {
			t.Errorf("second body %q", got)
		}
	})
}

// mw02 mounts limiters on a router, on a sub-router and on a route.
func mw02(t *testing.T) {
	mounts := map[string]func(...*middleware.Middleware) http.Handler{
		"nethttp": func(ms ...*middleware.Middleware) http.Handler {
			all := func(h http.Handler) http.Handler {
				for _, m := range slices.Backward(ms) {
					h = m.Handler(h)
				}
				return h
			}
			inner, outer := http.NewServeMux(), http.NewServeMux()
			inner.Handle("/b/{id}", all(http.HandlerFunc(fine)))
			outer.Handle("/a/", all(http.StripPrefix("/a", inner)))
			return all(outer)
		},
		"chi": func(ms ...*middleware.Middleware) http.Handler {
			var all chi.Middlewares
			for _, m := range ms {
				all = append(all, chiadapter.Middleware(m))
			}
			r, sub := chi.NewRouter(), chi.NewRouter()
			r.Use(all...)
			sub.Use(all...)
			sub.With(all...).Get("/b/{id}", fine)
			r.Mount("/a", sub)
			return r
		},
		"gin": func(ms ...*middleware.Middleware) http.Handler {
			gin.SetMode(gin.TestMode)
			var all []gin.HandlerFunc
			for _, m := range ms {
				all = append(all, ginadapter.Middleware(m))
			}
			g := gin.New()
			g.Use(all...)
			g.Group("/a", all...).GET("/b/:id", append(all, gin.WrapF(fine))...)
			return g
		},
	}
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, 4, perIP)
			calls := slices.Repeat([]string{"GET /a/b/1"}, 5)
			l.wantStatuses(t, mount(l.Middleware), []int{200, 200, 200, 200, 429}, calls...)

			first, second := newLimiter(t, 4, perIP), newLimiter(t, 10, perIP)
			first.wantStatuses(t, mount(first.Middleware, second.Middleware), []int{200, 200, 200, 200, 429}, calls...)
			look, err := store.Take(t.Context(), second.store, second.policy, "203.0.113.7", 0)
			if err != nil || look.Remaining != 6 {
				t.Errorf("the second limiter has %d left (%v); want 10 − 4", look.Remaining, err)
			}
		})
	}
}

func mw04(t *testing.T) {
	cors := plain(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	skip := func(c *middleware.Config) {
		c.Skip = func(r *http.Request) bool { return r.Method == http.MethodOptions }
	}
	routes := []route{{"POST", "/", fine}, {"OPTIONS", "/", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }}}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		outside, alone := newLimiter(t, 3, perIP), newLimiter(t, 3, perIP, skip)
		for name, test := range map[string]struct {
			*limiter
			layers []layer
		}{
			"CORS outside": {outside, []layer{cors, limit(outside.Middleware)}},
			"skip":         {alone, []layer{limit(alone.Middleware)}},
		} {
			t.Run(name, func(t *testing.T) {
				h := serve(app{layers: test.layers, routes: routes})
				answers := test.wantStatuses(t, h, []int{204, 200, 204, 200, 204, 200, 204, 429},
					slices.Repeat([]string{"OPTIONS /", "POST /"}, 4)...)
				for i := 0; i < len(answers); i += 2 {
					if got := answers[i].Header().Get("X-RateLimit-Remaining"); got != "" {
						t.Errorf("OPTIONS was counted: remaining %s", got)
					}
				}
			})
		}
	})
}

func mw05(t *testing.T) {
	outer := plain(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", "https://app.example")
			w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
			next.ServeHTTP(w, r)
		})
	})
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 1, perIP)
		h := serve(app{layers: []layer{outer, limit(l.Middleware)}, routes: []route{{"GET", "/", fine}}})
		second := l.wantStatuses(t, h, []int{200, 429}, "GET /", "GET /")[1].Header()
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":   "https://app.example",
			"Access-Control-Expose-Headers": "Retry-After",
			"Retry-After":                   "59",
		} {
			if got := second.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}
