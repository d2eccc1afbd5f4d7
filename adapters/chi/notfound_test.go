package chiadapter_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	chiadapter "github.com/weirgo/weir/adapters/chi"
	"github.com/weirgo/weir/keyfunc"
)

// Handlers of what has no route can work too, and share one budget.
func TestNotFound(t *testing.T) {
	var keys []string
	var ran int
	count := func(http.ResponseWriter, *http.Request) { ran++ }
	limit := func() func(http.Handler) http.Handler {
		return chiadapter.Middleware(limiter(t, 3, func(r *http.Request) (string, error) {
			key, err := keyfunc.Route(r)
			keys = append(keys, key+r.PathValue("id"))
			return key, err
		}))
	}
	routes := func(r chi.Router) {
		r.Post("/post/{id}", ok)
		r.Route("/sub/{org}", func(r chi.Router) { r.Get("/{id}", ok) })
	}
	for name, use := range map[string]func(chi.Router){
		"top": func(r chi.Router) {
			r.Use(limit())
			r.NotFound(count)
			r.MethodNotAllowed(count)
			routes(r)
		},
		"group": func(r chi.Router) {
			r.Group(func(r chi.Router) {
				r.Use(limit())
				r.NotFound(count)
				r.MethodNotAllowed(count)
				routes(r)
			})
		},
		"with": func(r chi.Router) {
			r = r.With(limit())
			r.NotFound(count)
			r.MethodNotAllowed(count)
			routes(r)
		},
		"sub-routers": func(r chi.Router) {
			l := limit()
			sub := func(r chi.Router) {
				r.Use(l)
				r.NotFound(count)
				r.MethodNotAllowed(count)
			}
			r.Route("/post", func(r chi.Router) { sub(r); r.Post("/{id}", ok) })
			r.Route("/sub/{org}", func(r chi.Router) { sub(r); r.Get("/{id}", ok) })
			r.Route("/nope", func(r chi.Router) { sub(r); r.Get("/a/b/c", ok) })
		},
		"twice": func(r chi.Router) {
			l := limit()
			r.Use(l)
			r.Group(func(r chi.Router) {
				r.Use(l)
				r.NotFound(count)
				r.MethodNotAllowed(count)
				routes(r)
			})
		},
	} {
		r := chi.NewRouter()
		use(r)
		keys, ran = nil, 0
		refused := 0
		for _, request := range []string{"GET /nope/1", "GET /post/7", "OPTIONS /post/7", "HEAD /post/7", "FOO /post/7",
			"GET /sub/acme/7/8", "POST /sub/acme/7", "CONNECT /nope/x", "OPTIONS /nope/x", "GET /post/7/", "GET /post/7%2F8", "GET /nope/%00"} {
			method, target, _ := strings.Cut(request, " ")
			if do(r, method, target).Code == 429 {
				refused++
			}
		}
		want := 9
		if name == "sub-routers" {
			want-- // chi answers an unknown method at the top
		}
		if ran != 3 || refused != want {
			t.Errorf("%s: the handlers ran %d times, and %d were refused", name, ran, refused)
		}
		for _, key := range keys {
			if key != "unmatched" {
				t.Errorf("%s: key %q", name, key)
			}
		}
	}
}
