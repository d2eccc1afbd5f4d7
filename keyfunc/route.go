package keyfunc

import (
	"net/http"
	"net/url"
	"path"
	"reflect"
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
		h, pattern := mux.Handler(r)
		if redirects(mux, r, h) {
			pattern = redirected(mux, r, pattern)
		}
		if pattern == "" {
			return unmatched, nil
		}
		return pattern, nil
	}
}

var redirectHandler = reflect.TypeOf(http.RedirectHandler("", http.StatusMovedPermanently))

// redirects tells whether h is mux's own redirect of r. To look at the pattern
// is not enough: a client can make a path that looks like one. Mux makes a new
// handler for each redirect, and one that was registered stays the same.
func redirects(mux *http.ServeMux, r *http.Request, h http.Handler) bool {
	if reflect.TypeOf(h) != redirectHandler {
		return false
	}
	again, _ := mux.Handler(r)
	return h != again
}

// redirected gives the pattern for where mux redirects r to. What mux says,
// which is pattern, can be that path, the client's own word: if the method is
// CONNECT, and with GODEBUG=httpmuxgo121=1. It has a final slash then, so that
// mux does not redirect from there.
func redirected(mux *http.ServeMux, r *http.Request, pattern string) string {
	if r.Method != http.MethodConnect && pattern != path.Clean("/"+r.URL.Path)+"/" {
		return pattern
	}
	there := r.WithContext(r.Context())
	there.URL = &url.URL{Path: pattern}
	_, pattern = mux.Handler(there)
	return pattern
}
