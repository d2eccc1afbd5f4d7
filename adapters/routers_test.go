package adapters_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimw "github.com/go-chi/chi/v5/middleware"
	chiadapter "github.com/weirgo/weir/adapters/chi"
	ginadapter "github.com/weirgo/weir/adapters/gin"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
)

// maker makes the limiter, given the key function for the route.
type maker func(route keyfunc.Func) *middleware.Middleware

// router is a framework as it may be set up, with the limiter in a sensible
// place. Unlike those in frameworks it serves the spellings of a path that this
// set-up serves.
type router struct {
	framework, name string

	serve func(routes []route, limiter maker) http.Handler

	folds   bool     // "//" reaches the same handler as "/"
	partial bool     // what no route matches doesn't come to the limiter
	mounts  []string // paths of mounts, which have a key though no handler

	// encoded tells whether the handler gets path values that it must decode; nil
	// is never.
	encoded func(*http.Request) bool
}

// eachRouter runs test under each framework's name and, in that, the router's.
func eachRouter(t *testing.T, test func(t *testing.T, r router)) {
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) {
			for _, r := range routers() {
				if r.framework == f.name {
					t.Run(r.name, func(t *testing.T) { test(t, r) })
				}
			}
		})
	}
}

func routers() []router {
	all := []router{
		{framework: "nethttp", name: "inside", partial: true, serve: func(routes []route, limiter maker) http.Handler {
			mux, m := http.NewServeMux(), limiter(keyfunc.Route)
			for _, r := range routes {
				mux.Handle(strings.TrimSpace(r.method+" "+r.path), m.Handler(r.handler))
			}
			return mux
		}},
		{framework: "nethttp", name: "around", serve: func(routes []route, limiter maker) http.Handler {
			mux := http.NewServeMux()
			for _, r := range routes {
				mux.HandleFunc(strings.TrimSpace(r.method+" "+r.path), r.handler)
			}
			return limiter(keyfunc.RouteOf(mux)).Handler(mux)
		}},
	}
	chiEncoded := func(r *http.Request) bool { return r.URL.RawPath != "" }
	for _, c := range []struct {
		name  string
		folds bool
		build func(top chi.Router, routes []route, limit func(http.Handler) http.Handler)
	}{
		{"plain", false, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.GetHead, limit)
			handleChi(top, routes)
		}},
		{"CleanPath", true, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.CleanPath, chimw.GetHead, limit)
			handleChi(top, routes)
		}},
		{"StripSlashes", false, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.StripSlashes, chimw.GetHead, limit)
			handleChi(top, routes)
		}},
		{"CleanPath and StripSlashes", true, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.CleanPath, chimw.StripSlashes, chimw.GetHead, limit)
			handleChi(top, routes)
		}},
		{"RedirectSlashes", false, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.RedirectSlashes, chimw.GetHead, limit)
			handleChi(top, routes)
		}},
		{"Mount", true, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.CleanPath, chimw.GetHead, limit)
			mountChi(top, routes, func(h http.Handler) http.Handler { return h })
		}},
		{"Group", true, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.CleanPath, chimw.GetHead)
			top.Group(func(r chi.Router) {
				r.Use(limit)
				handleChi(r, routes)
				r.NotFound(http.NotFound)
				r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(405) })
			})
		}},
		{"With", true, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.CleanPath, chimw.GetHead)
			handleChi(top.With(limit), routes)
		}},
		{"sub-router", true, func(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
			top.Use(chimw.CleanPath, chimw.GetHead)
			mountChi(top, routes, limit)
		}},
	} {
		var mounts []string
		if c.name == "Mount" || c.name == "sub-router" {
			mounts = []string{"/api", "/orders", "/dir", "/tenants"}
		}
		all = append(all, router{framework: "chi", name: c.name, folds: c.folds, encoded: chiEncoded,
			partial: c.name == "With" || c.name == "sub-router", mounts: mounts,
			serve: func(routes []route, limiter maker) http.Handler {
				top := chi.NewRouter()
				c.build(top, routes, chiadapter.Middleware(limiter(keyfunc.Route)))
				return top
			}})
	}
	for _, c := range []struct {
		name    string
		folds   bool
		encoded func(*http.Request) bool
		set     func(*gin.Engine)
	}{
		{"plain", false, nil, func(*gin.Engine) {}},
		{"RemoveExtraSlash", true, nil, func(g *gin.Engine) { g.RemoveExtraSlash = true }},
		{"RedirectFixedPath", false, nil, func(g *gin.Engine) { g.RedirectFixedPath = true }},
		{"HandleMethodNotAllowed", false, nil, func(g *gin.Engine) {
			g.HandleMethodNotAllowed, g.RedirectTrailingSlash = true, false
		}},
		{"UseRawPath", false, nil, func(g *gin.Engine) { g.UseRawPath = true }},
		{"UseRawPath, encoded", true, func(r *http.Request) bool { return r.URL.RawPath != "" }, func(g *gin.Engine) {
			g.UseRawPath, g.UnescapePathValues, g.RemoveExtraSlash = true, false, true
		}},
		{"UseEscapedPath", true, nil, func(g *gin.Engine) { g.UseEscapedPath, g.RemoveExtraSlash = true, true }},
		{"UseEscapedPath, encoded", false, func(*http.Request) bool { return true }, func(g *gin.Engine) {
			g.UseEscapedPath, g.UnescapePathValues = true, false
		}},
		{"group", true, nil, func(g *gin.Engine) { g.RemoveExtraSlash = true }},
	} {
		all = append(all, router{framework: "gin", name: c.name, folds: c.folds, encoded: c.encoded, partial: c.name == "group",
			serve: func(routes []route, limiter maker) http.Handler {
				gin.SetMode(gin.TestMode)
				g := gin.New()
				c.set(g)
				limit := ginadapter.Middleware(limiter(keyfunc.Route))
				if c.name == "group" {
					handleGin(g.Group("/", limit), routes)
					return g
				}
				g.Use(limit)
				handleGin(g, routes)
				return g
			}})
	}
	return all
}

var (
	chiPaths = strings.NewReplacer("{rest...}", "*", "{$}", "")
	ginPaths = strings.NewReplacer("{rest...}", "*rest", "{$}", "", "{", ":", "}", "")
)

func handleChi(r chi.Router, routes []route) {
	for _, route := range routes {
		if route.method == "" {
			r.Handle(chiPaths.Replace(route.path), route.handler)
		} else {
			r.Method(route.method, chiPaths.Replace(route.path), route.handler)
		}
	}
}

// mountChi makes a sub-router for what follows the first element of each path,
// with the limiter in it.
func mountChi(top chi.Router, routes []route, limit func(http.Handler) http.Handler) {
	subs := map[string]chi.Router{}
	for _, r := range routes {
		first, rest, ok := strings.Cut(r.path[1:], "/")
		if !ok {
			handleChi(top.With(limit), []route{r})
			continue
		}
		if subs[first] == nil {
			subs[first] = chi.NewRouter()
			subs[first].Use(limit)
			top.Mount("/"+first, subs[first])
		}
		r.path = "/" + rest
		handleChi(subs[first], []route{r})
	}
}

func handleGin(g gin.IRoutes, routes []route) {
	for _, r := range routes {
		path := ginPaths.Replace(r.path)
		switch r.method {
		case "":
			g.Any(path, gin.WrapF(r.handler))
		case http.MethodGet:
			g.HEAD(path, gin.WrapF(r.handler))
			fallthrough
		default:
			g.Handle(r.method, path, gin.WrapF(r.handler))
		}
	}
}

// limited serves routes by r, with a limiter of count for each route and
// address.
func (r router) limited(t *testing.T, count int64, routes ...route) (*limiter, http.Handler) {
	t.Helper()
	var l *limiter
	h := r.serve(routes, func(route keyfunc.Func) *middleware.Middleware {
		l = newLimiter(t, count, keyfunc.Join(route, perIP))
		return l.Middleware
	})
	return l, h
}

// send sends a request's bytes as they are and gives the answer.
func send(t *testing.T, server *httptest.Server, request string) *http.Response {
	t.Helper()
	addr := server.Listener.Addr()
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, request)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res
}
