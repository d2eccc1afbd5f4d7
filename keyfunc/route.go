package keyfunc

import (
	"net/http"
	"net/url"
	"path"
)

// unmatched is the key of requests without a route. It can't be a pattern, as
// those have a slash.
const unmatched = "unmatched"

// Route is a [Func]: it gives the pattern of the request's route, such as
// "GET /orders/{id}", and never the path, of which a caller can invent any
// number. Its error is always nil.
//
// Where there is no pattern the key is "unmatched": those who scan for paths
// share one budget, and a middleware in the wrong place limits too much, which
// is seen, rather than nothing.
//
// http.ServeMux knows the pattern only inside: wrap the handlers, or use
// [RouteOf] around the mux. Of a mux inside a mux it is the inner one's pattern,
// without what http.StripPrefix took off, so two inner muxes with equal patterns
// share keys. With chi and gin the adapters set it, also around the routes.
//
// The method counts only as far as the pattern says it: "/report" is one key
// for all methods, and as ServeMux serves HEAD by "GET /report" too, GET and
// HEAD share that key.
func Route(r *http.Request) (string, error) {
	if r.Pattern == "" {
		return unmatched, nil
	}
	return r.Pattern, nil
}

// RouteOf is [Route] for a limit around mux: it gives the pattern that mux will
// find, whatever r.Pattern says. Where mux only redirects, to the clean form of a
// path or to one with a final slash, it is the pattern that the path will have
// then; where mux will answer 404 or 405 it is "unmatched". Path values are not
// known there: a rule that has [PathValue] goes inside.
//
// What changes the path or the method before mux sees it, such as
// http.StripPrefix, must come before the limit. A nil mux is a mistake
// ([Validate]). It is safe to register patterns while requests run.
func RouteOf(mux *http.ServeMux) Func {
	if mux == nil {
		return wrong("RouteOf: mux", nil, "is nil")
	}
	return func(r *http.Request) (string, error) {
		_, pattern := mux.Handler(r)
		if pattern == r.URL.Path || !redirects(r, pattern) {
			if pattern == "" {
				return unmatched, nil
			}
			return pattern, nil
		}
		// Some redirects give a path in the place of a pattern, which is the
		// client's own word. What does that path lead to?
		there := r.WithContext(r.Context())
		there.URL = &url.URL{Host: r.URL.Host, Path: pattern}
		if _, p := mux.Handler(there); p != "" && !redirects(there, p) {
			return p, nil
		}
		return unmatched, nil
	}
}

// redirects tells whether pattern can be the path that r is redirected to. A
// pattern without wildcards can look the same.
func redirects(r *http.Request, pattern string) bool {
	clean := path.Clean("/" + r.URL.Path)
	return pattern != r.URL.Path && (pattern == clean || pattern == clean+"/")
}
