// Package chiadapter limits what chi serves, by rules that use the route:
//
//	r.Use(chiadapter.Middleware(limit))
//
// Where no rule does, r.Use(limit.Handler) is enough.
package chiadapter

import (
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"
	"github.com/weirgo/weir/middleware"
)

// Middleware limits what comes after it, with Use on a router, a sub-router or a
// group, and with With on a route.
//
// For the decision the request has the pattern that chi gives it in the end,
// from the top router on, such as "/orders/{id}", and the path values, decoded.
// Where no route matches, Pattern is empty. Outside chi both stay as they are.
//
// Put it after middleware that changes the path or the method by which chi
// routes, such as CleanPath, StripSlashes and GetHead: before them, another
// spelling of a path is another route or none, with a budget of its own.
//
// chi's values are encoded where r.URL.RawPath is set, and only there. A handler
// that always decodes them takes "%2531" for 1, which has another key.
//
// Two things can't be seen before chi goes there. A sub-router that is wrapped
// in a handler and then mounted is one route, "/mounted/*". And the very path of
// a mount has the mount's pattern, whatever the sub-router has for it.
func Middleware(m *middleware.Middleware) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		limited := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if rctx := chi.RouteContext(r.Context()); rctx != nil && r.URL.RawPath != "" {
				// A handler that decodes what chi gives must not do it twice.
				setPathValues(r, rctx.URLParams, asRouted)
			}
			next.ServeHTTP(w, r)
		}))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if rctx := chi.RouteContext(r.Context()); rctx != nil && rctx.Routes != nil {
				route(r, rctx)
			}
			limited.ServeHTTP(w, r)
		})
	}
}

// setPathValues sets the path values to what spell makes of params.
func setPathValues(r *http.Request, params chi.RouteParams, spell func(string) string) {
	for i, key := range params.Keys {
		r.SetPathValue(key, spell(params.Values[i]))
	}
}

func asRouted(value string) string { return value }

// decoded is value without percent-encoding. chi leaves that in where a path is
// not in the usual spelling, and each spelling would be another key for the
// same thing.
func decoded(value string) string {
	if s, err := url.PathUnescape(value); err == nil {
		return s
	}
	return value
}
