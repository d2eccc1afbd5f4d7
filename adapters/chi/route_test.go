package chiadapter_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	chimw "github.com/go-chi/chi/v5/middleware"
	chiadapter "github.com/weirgo/weir/adapters/chi"
)

func contextWith(r *http.Request, rctx *chi.Context) context.Context {
	return context.WithValue(r.Context(), chi.RouteCtxKey, rctx)
}

// routeOf is what a key function can know of r's route.
func routeOf(r *http.Request) string {
	s := r.Pattern
	for _, name := range []string{"org", "id", "file", "*"} {
		s += " " + name + "=" + r.PathValue(name)
	}
	return s
}

// spies are limiters that note what their key functions see, by where they are.
type spies struct {
	t    *testing.T
	seen map[string]string // of this request
	ever map[string]bool
	end  string // what the handler sees; empty: not reached
}

func (s *spies) at(place string) func(http.Handler) http.Handler {
	s.ever[place] = false
	return chiadapter.Middleware(limiter(s.t, 1e6, func(r *http.Request) (string, error) {
		s.seen[place], s.ever[place] = routeOf(r), true
		return "k", nil
	}))
}

func (s *spies) handler(w http.ResponseWriter, r *http.Request) {
	s.end = routeOf(r)
	s.seen["chi's own"] = chi.RouteContext(r.Context()).RoutePattern() + s.end[len(r.Pattern):]
}

// get asks h for target and holds what was seen to what the handler saw, and
// that to pattern; empty is no route.
func (s *spies) get(h http.Handler, target, pattern string) {
	s.t.Helper()
	s.do(h, http.MethodGet, target, pattern)
}

func (s *spies) do(h http.Handler, method, target, pattern string) {
	s.t.Helper()
	s.seen, s.end = map[string]string{}, ""
	do(h, method, target)
	if got, _, _ := strings.Cut(s.end, " "); got != pattern {
		s.t.Errorf("%s: the handler has pattern %q, want %q", target, got, pattern)
	}
	for place, saw := range s.seen {
		if s.end == "" {
			if !strings.HasPrefix(saw, " ") {
				s.t.Errorf("%s, %s: saw %q; want no pattern", target, place, saw)
			}
		} else if saw != s.end {
			s.t.Errorf("%s, %s: saw %q; the handler %q", target, place, saw, s.end)
		}
	}
	if len(s.seen) == 0 {
		s.t.Errorf("%s: no limiter saw it", target)
	}
}

// tree is a router with limiters wherever one can be.
func (s *spies) tree() chi.Router {
	deep := chi.NewRouter()
	deep.Use(s.at("deep"))
	deep.With(s.at("deep leaf")).Get("/{id}", s.handler)
	deep.With(s.at("deep wildcard")).Get("/w/*", s.handler)

	org := chi.NewRouter()
	org.Use(s.at("org"))
	org.With(s.at("org leaf")).Get("/", s.handler)
	org.Get("/users/{id:[a-z]{2,4}}", s.handler)
	org.Mount("/deep/{file}", deep)
	org.Group(func(r chi.Router) {
		r.Use(s.at("org group"))
		r.Get("/g/{id}", s.handler)
		r.Route("/in/{id}", func(r chi.Router) {
			r.Use(s.at("in"))
			r.With(s.at("in leaf")).Get("/x", s.handler)
			r.Get("/{id}", s.handler) // hides the outer id
		})
		r.NotFound(func(http.ResponseWriter, *http.Request) {})
	})

	r := chi.NewRouter()
	r.Use(s.at("top"))
	r.Get("/", s.handler)
	r.Get("/plain/{id}", s.handler)
	r.Post("/post", s.handler)
	r.With(s.at("wildcard")).Get("/files/*", s.handler)
	r.Mount("/orgs/{org}", org)
	r.Group(func(r chi.Router) {
		r.Use(s.at("group"))
		r.Get("/grouped/{id}", s.handler)
		r.Route("/re/{org:[0-9]{2}|x\\*}-{file}", func(r chi.Router) {
			r.Use(s.at("regexp"))
			r.Get("/{id}", s.handler)
		})
		r.Route("/slash/", func(r chi.Router) {
			r.Use(s.at("slash"))
			r.Get("/", s.handler)
			r.Get("/{id}", s.handler)
		})
	})
	return r
}

func TestRouteAtDecision(t *testing.T) {
	s := &spies{t: t, ever: map[string]bool{}}
	r := s.tree()
	for _, tt := range []struct{ target, pattern string }{
		{"/", "/"},
		{"/plain/7", "/plain/{id}"},
		{"/plain/7?a=b", "/plain/{id}"},
		{"/files/a/b.txt", "/files/*"},
		{"/files/", "/files/*"},
		{"/orgs/acme", "/orgs/{org}"},
		{"/orgs/acme/", "/orgs/{org}"},
		{"/orgs/acme/users/bob", "/orgs/{org}/users/{id:[a-z]{2,4}}"},
		{"/orgs/acme/g/7", "/orgs/{org}/g/{id}"},
		{"/orgs/acme/in/7/x", "/orgs/{org}/in/{id}/x"},
		{"/orgs/acme/in/7/8", "/orgs/{org}/in/{id}/{id}"},
		{"/orgs/acme/deep/f/7", "/orgs/{org}/deep/{file}/{id}"},
		{"/orgs/acme/deep/f/w/a/b", "/orgs/{org}/deep/{file}/w/*"},
		{"/orgs/acme/deep/f/w/", "/orgs/{org}/deep/{file}/w/*"},
		{"/orgs/acme/deep/deep/w/w/", "/orgs/{org}/deep/{file}/w/*"},
		{"/orgs/orgs/deep/orgs/7", "/orgs/{org}/deep/{file}/{id}"},
		{"/grouped/7", "/grouped/{id}"},
		{"/re/42-f/7", "/re/{org:[0-9]{2}|x\\*}-{file}/{id}"},
		{"/re/x*-f-g/7", "/re/{org:[0-9]{2}|x\\*}-{file}/{id}"},
		{"/slash/", "/slash"},
		{"/slash/7", "/slash/{id}"},

		{"/nope", ""},
		{"/post", ""}, // 405
		{"/plain/7/8", ""},
		{"/re/4-f/7", ""},
		{"/orgs/acme/nope", ""},
		{"/orgs/acme/users/7", ""},
		{"/orgs/acme/deep/f/7/8", ""},
		{"/orgs/acme/in/7/8/9", ""},
		{"/slash/7/8", ""},
	} {
		s.get(r, tt.target, tt.pattern)
	}
	for place, ever := range s.ever {
		if !ever {
			t.Errorf("no request came to %q", place)
		}
	}
}

// What comes before the limiter may change what chi routes by.
func TestAfterRewriting(t *testing.T) {
	for _, tt := range []struct {
		name            string
		before          func(http.Handler) http.Handler
		target, pattern string
	}{
		{"CleanPath", chimw.CleanPath, "//plain//7", "/plain/{id}"},
		{"CleanPath", chimw.CleanPath, "/orgs//acme/./deep/f//7", "/orgs/{org}/deep/{file}/{id}"},
		{"StripSlashes", chimw.StripSlashes, "/plain/7/", "/plain/{id}"},
		{"StripSlashes", chimw.StripSlashes, "/orgs/acme/in/7/8/", "/orgs/{org}/in/{id}/{id}"},
		{"StripPrefix", chimw.StripPrefix("/v1"), "/v1/orgs/acme/g/7", "/orgs/{org}/g/{id}"},
		{"PathRewrite", chimw.PathRewrite("/old", "/orgs"), "/old/acme/g/7", "/orgs/{org}/g/{id}"},
		{"URLFormat", chimw.URLFormat, "/orgs/acme/g/7.json", "/orgs/{org}/g/{id}"},
	} {
		s := &spies{t: t, ever: map[string]bool{}}
		r := chi.NewRouter()
		r.Use(tt.before, s.at("before"))
		r.Mount("/", s.tree())
		s.get(r, tt.target, tt.pattern)
	}
}

func TestAfterGetHead(t *testing.T) {
	s := &spies{t: t, ever: map[string]bool{}}
	slash := chi.NewRouter()
	slash.Get("/", s.handler)
	slash.Get("/{id}", s.handler)
	r := chi.NewRouter()
	r.Use(chimw.GetHead, s.at("top"))
	r.With(s.at("leaf")).Get("/files/*", s.handler)
	r.Route("/a/{org}", func(r chi.Router) {
		r.Use(s.at("sub"))
		r.With(s.at("sub leaf")).Get("/w/*", s.handler)
		r.Get("/{id}", s.handler)
	})
	r.With(s.at("slash")).Mount("/s/", slash)
	for target, pattern := range map[string]string{
		"/s/": "/s", "/s/7": "/s/{id}", "/files/": "/files/*", "/files/x": "/files/*", "/a/acme/7": "/a/{org}/{id}", "/a/acme/w/": "/a/{org}/w/*", "/nope": "",
	} {
		s.do(r, http.MethodHead, target, pattern)
		s.do(r, http.MethodGet, target, pattern)
	}
	s.do(r, http.MethodPost, "/files/x", "")
}

func TestRewritingOnTheWay(t *testing.T) {
	s := &spies{t: t, ever: map[string]bool{}}
	r := chi.NewRouter()
	r.Route("/a/{org}", func(r chi.Router) {
		r.Use(chimw.StripSlashes, s.at("sub"), s.at("again"))
		r.Get("/b/{id}", s.handler)
	})
	r.With(chimw.StripPrefix("/f"), s.at("leaf")).Get("/f/*", s.handler)
	s.get(r, "/f/", "/f/*")
	s.get(r, "/f/x", "/f/*")
	s.get(r, "/a/acme/b/7/", "/a/{org}/b/{id}")
	s.get(r, "/a/acme/b/7/c", "")
}

// Around chi there may be a mux with a pattern of its own.
func TestInsideServeMux(t *testing.T) {
	s := &spies{t: t, ever: map[string]bool{}}
	mux := http.NewServeMux()
	var outside string
	mux.HandleFunc("/v1/{file}/", func(w http.ResponseWriter, r *http.Request) {
		http.StripPrefix("/v1/f", s.tree()).ServeHTTP(w, r)
		outside = r.Pattern
	})
	s.get(mux, "/v1/f/plain/7", "/plain/{id}")
	if s.end != "/plain/{id} org= id=7 file=f *=" {
		t.Errorf("the mux's own path value is gone: %q", s.end)
	}
	s.get(mux, "/v1/f/nope", "")
	if outside != "/v1/{file}/" {
		t.Errorf("outside, the pattern has become %q", outside)
	}
}

// The sub-router may have no route for the path it is mounted at.
func TestPathOfMount(t *testing.T) {
	s := &spies{t: t, ever: map[string]bool{}}
	sub := chi.NewRouter()
	sub.Use(s.at("sub"))
	sub.Get("/{id}", s.handler)
	r := chi.NewRouter()
	r.Use(s.at("top"))
	r.Mount("/a/{org}", sub)
	for _, target := range []string{"/a/acme", "/a/acme/"} {
		s.seen = map[string]string{}
		if w := get(r, target); w.Code != 404 {
			t.Errorf("%s: %d", target, w.Code)
		}
		for _, place := range []string{"top", "sub"} {
			if got := s.seen[place]; got != "/a/{org} org=acme id= file= *=" {
				t.Errorf("%s, %s: saw %q", target, place, got)
			}
		}
	}
}

// A wrapped sub-router hides its routes until chi has found one.
func TestHiddenSubRouter(t *testing.T) {
	s := &spies{t: t, ever: map[string]bool{}}
	sub := chi.NewRouter()
	sub.Use(s.at("sub"))
	sub.With(s.at("leaf")).Get("/b/{id}", s.handler)
	sub.With(s.at("leaf")).Get("/w/*", s.handler)
	r := chi.NewRouter()
	r.Use(s.at("top"))
	r.Mount("/a", http.HandlerFunc(sub.ServeHTTP))
	for target, pattern := range map[string]string{"/a/b/7": "/a/b/{id}", "/a/w/x": "/a/w/*"} {
		s.seen = map[string]string{}
		get(r, target)
		for place, want := range map[string]string{"top": "/a/*", "sub": "/a/*", "leaf": pattern} {
			if got, _, _ := strings.Cut(s.seen[place], " "); got != want {
				t.Errorf("%s, %s: pattern %q, want %q", target, place, got, want)
			}
		}
	}
}
