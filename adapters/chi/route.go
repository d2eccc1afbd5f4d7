package chiadapter

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
)

// scratch is what a look at the routes needs.
type scratch struct {
	chi.Context
	path []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// route sets r's pattern and path values to what chi will set in the end, the
// values decoded. It does so in place, as chi does.
func route(r *http.Request, rctx *chi.Context) {
	n := len(rctx.RoutePatterns)
	if n > 0 && !strings.HasSuffix(rctx.RoutePatterns[n-1], "*") {
		decodeRouted(r, rctx) // chi's search has come to its end
		return
	}
	s := scratches.Get().(*scratch)
	s.Reset()
	switch {
	case rctx.Routes.Find(&s.Context, cmp.Or(rctx.RouteMethod, r.Method), s.full(r, rctx)) == "":
		// What a router around chi has set, or chi on the way to here, is not the
		// pattern of a route.
		r.Pattern = ""
	case len(s.RoutePatterns) <= n:
		decodeRouted(r, rctx) // it has, at a route that ends in a wildcard
	default:
		r.Pattern = s.RoutePattern()
		s.blankMounts()
		spell := asRouted
		if r.URL.RawPath != "" { // which is what chi routes by, if it is there
			spell = decoded
		}
		setPathValues(r, s.URLParams, spell)
	}
	scratches.Put(s)
}

// decodeRouted decodes the path values that chi has set.
func decodeRouted(r *http.Request, rctx *chi.Context) {
	if r.URL.RawPath != "" {
		setPathValues(r, rctx.URLParams, decoded)
	}
}

// blankMounts blanks the wildcards by which a sub-router is mounted, as chi
// does when it enters one.
func (s *scratch) blankMounts() {
	last := len(s.URLParams.Keys) - 1
	if strings.HasSuffix(s.RoutePatterns[len(s.RoutePatterns)-1], "*") {
		last-- // that one is the route's own
	}
	for i := 0; i <= last; i++ {
		if s.URLParams.Keys[i] == "*" {
			s.URLParams.Values[i] = ""
		}
	}
}

// full is the path that leads from the top router to where r is going.
//
// Inside a sub-router chi keeps only the rest of it, and r.URL need not have
// the beginning: middleware may have made another path of that. But what chi
// has matched so far, with the values it found there, is the beginning.
func (s *scratch) full(r *http.Request, rctx *chi.Context) string {
	asked := cmp.Or(r.URL.RawPath, r.URL.Path, "/")
	if len(rctx.RoutePatterns) == 0 {
		return cmp.Or(rctx.RoutePath, asked)
	}
	b, values := s.path[:0], rctx.URLParams.Values
	for _, pattern := range rctx.RoutePatterns {
		b, values = fill(bytes.TrimSuffix(b, []byte("/")), pattern, values)
	}
	// The last pattern ends in a wildcard, and its value is the rest of the path
	// until chi enters a sub-router: then it is blank, and RoutePath is the rest.
	// It is blank too where there is no rest, but then nothing is missing.
	if n := len(rctx.URLParams.Values); string(b) != asked && rctx.RoutePath != "" && n > 0 && rctx.URLParams.Values[n-1] == "" {
		b = append(bytes.TrimSuffix(b, []byte("/")), rctx.RoutePath...)
	}
	s.path = b
	if string(b) == asked {
		return asked // saves a copy
	}
	return string(b)
}

// fill appends pattern with values in the place of its parameters, and returns
// the values that are left.
func fill(b []byte, pattern string, values []string) ([]byte, []string) {
	for {
		i := strings.IndexAny(pattern, "{*")
		if i < 0 {
			return append(b, pattern...), values
		}
		b = append(b, pattern[:i]...)
		if len(values) > 0 {
			b, values = append(b, values[0]...), values[1:]
		}
		pattern = pattern[i+parameter(pattern[i:]):]
	}
}

// parameter is the length of the parameter that s begins with: "*", or braces
// that may hold a regular expression with braces.
func parameter(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(s)
}
