package adapters_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chiadapter "github.com/weirgo/weir/adapters/chi"
	ginadapter "github.com/weirgo/weir/adapters/gin"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
)

// TestCases holds the adapters, and net/http beside them, to cases from other
// projects. Each is named by its id.
func TestCases(t *testing.T) {
	t.Run("KEY-14", key14)
	t.Run("PATH-01", path01)
	t.Run("PATH-03", path03)
	t.Run("PATH-05", path05)
	t.Run("PATH-07", path07)
	t.Run("HDR-13", hdr13)
	t.Run("HDR-16", hdr16)
	t.Run("MW-01", mw01)
	t.Run("MW-02", mw02)
	t.Run("MW-03", mw03)
	t.Run("MW-04", mw04)
	t.Run("MW-05", mw05)
}

func fine(http.ResponseWriter, *http.Request) {}

func key14(t *testing.T) {
	modes := map[string]struct {
		key  keyfunc.Func
		want []int
	}{
		"a": {perRoute, []int{200, 200, 429, 429, 429}},
		"b": {keyfunc.Join(keyfunc.Route, keyfunc.PathValue("orderId"), perIP), []int{200, 200, 200, 200, 429}},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, mode := range modes {
			t.Run(name, func(t *testing.T) {
				l := newLimiter(t, 2, mode.key)
				h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/orders/{orderId}/verify", fine}}})
				l.wantStatuses(t, h, mode.want, "GET /orders/123/verify", "GET /orders/234/verify",
					"GET /orders/345/verify", "GET /orders/123/verify", "GET /orders/123/verify")
			})
		}
	})
}

func path01(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 2, perRoute)
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"PUT", "/api/v2/users/validate-password", fine}}})
		odd := 429
		if strings.HasSuffix(t.Name(), "nethttp") {
			odd = http.StatusTemporaryRedirect // a ServeMux doesn't serve other spellings
		}
		l.wantStatuses(t, h, []int{200, 200, odd, odd}, "PUT /api/v2/users/validate-password", "PUT /api/v2/users/validate-password",
			"PUT /api/v2/users//validate-password", "PUT //api/v2/users/validate-password")
	})
}

func path03(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 1, perRoute)
		sent := 0
		server := httptest.NewServer(serve(app{
			layers: []layer{limit(l.Middleware)},
			routes: []route{{"POST", "/api/otc/send", func(http.ResponseWriter, *http.Request) { sent++ }}},
		}))
		defer server.Close()
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		answers := bufio.NewReader(conn)
		for i, path := range []string{"/api/otc/send", "/api/otc/%73end", "/./api/otc/send", "/api/x/../otc/send"} {
			l.seconds = int64(i)
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", path)
			res, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			switch {
			case i == 0 && res.StatusCode == 200, i > 0 && slices.Contains([]int{301, 307, 308, 404, 429}, res.StatusCode):
			default:
				t.Errorf("%s: %d", path, res.StatusCode)
			}
		}
		if sent != 1 {
			t.Errorf("sent %d times, want 1", sent)
		}
	})
}

func path05(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 5, perRoute)
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/orders/{id}", fine}}, top: true})
		got := map[int]int{}
		for i := range 10_000 {
			got[do(h, "GET", "/nope/"+strconv.Itoa(i)).Code]++
		}
		if len(got) != 2 || got[404] != 5 || got[429] != 9995 {
			t.Errorf("statuses %v", got)
		}
		if n := l.store.Len(); n > 2 {
			t.Errorf("%d keys", n)
		}
	})
}

func path07(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 3, keyfunc.Route)
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/report", fine}}})
		refused := l.wantStatuses(t, h, []int{200, 200, 200, 429, 429},
			"GET /report", "HEAD /report", "HEAD /report", "HEAD /report", "GET /report")[3]
		wantRateHeaders(t, refused.Header(), "0")
		if refused.Header().Get("Retry-After") == "" || refused.Body.Len() != 0 {
			t.Errorf("refused: %v %q", refused.Header(), refused.Body)
		}
	})
}

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
