package adapters_test

import (
	"bufio"
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
)

// spelledRoutes have paths for each, to begin from.
var spelledRoutes = []struct {
	method, pattern string
	paths           []string
}{
	{"GET", "/report", []string{"/report"}},
	{"POST", "/api/otc/send", []string{"/api/otc/send"}},
	{"", "/api/any", []string{"/api/any"}},
	{"GET", "/orders/{id}/verify", []string{"/orders/+12%2F5/verify", "/orders/a%2Fb/verify"}},
	{"GET", "/orders/{id}", []string{"/orders/caf%C3%A9"}},
	{"GET", "/dir/{$}", []string{"/dir/", "/dir"}},
	{"", "/tenants/{id}/{rest...}", []string{"/tenants/a.b/x/y", "/tenants/1", "/tenants/2%2F"}},
}

// respell changes one thing of a path.
func respell(rng *rand.Rand, p string) string {
	at := rng.IntN(len(p))
	escape := func(format string) string { return p[:at] + fmt.Sprintf(format, p[at]) + p[at+1:] }
	slashes := strings.Count(p, "/")
	// insert puts s in the place of one slash.
	insert := func(s string) string {
		n := rng.IntN(max(1, slashes))
		i := -1
		for range n + 1 {
			i += 1 + max(0, strings.IndexByte(p[i+1:], '/'))
		}
		return p[:i] + s + p[min(i+1, len(p)):]
	}
	switch rng.IntN(18) {
	case 0:
		return escape("%%%02X")
	case 1:
		return escape("%%%02x")
	case 2:
		return escape("%%25%02X")
	case 3:
		return p[:at] + strings.ToUpper(p[at:at+1]) + p[at+1:]
	case 4:
		return insert("//")
	case 5:
		return insert("/./")
	case 6:
		return insert("/x/../")
	case 7:
		return insert("/%2e%2E/")
	case 8:
		return insert("%2F")
	case 9:
		return insert("/%2e/")
	case 10:
		return p + "/"
	case 11:
		return p[:1] + strings.TrimSuffix(p[1:], "/")
	case 12:
		return p + []string{"/.", "/..", "/x/..", "//", "%2F", "%2f%2F", "%20", "%00", ";x", ".json"}[rng.IntN(10)]
	case 13:
		return []string{"/", "/.", "/..", "/%2e", "/x/.."}[rng.IntN(5)] + p
	case 14:
		return p + []string{"?", "?x=%2F", "?/../"}[rng.IntN(3)]
	case 15: // without the last element
		return p[:max(1, strings.LastIndexByte(p, '/'))]
	case 16: // with another
		return p[:strings.LastIndexByte(p, '/')+1] + strconv.FormatUint(rng.Uint64(), 36)
	}
	return "http://elsewhere.example" + p
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "OPTIONS", "CONNECT", "TRACE", "get", "FOO", "PROPFIND"}

// spelling is a request for something like one of spelledRoutes.
func spelling(rng *rand.Rand) *http.Request {
	for {
		route := spelledRoutes[rng.IntN(len(spelledRoutes))]
		method, target := cmp.Or(route.method, "CONNECT"), route.paths[rng.IntN(len(route.paths))]
		if rng.IntN(4) == 0 {
			method = methods[rng.IntN(len(methods))]
		}
		for range rng.IntN(5) {
			target = respell(rng, target)
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err == nil {
			r.RemoteAddr = "203.0.113.7:1"
			return r
		}
	}
}

// spelled sends spellings of all routes to r, with a limiter of count by key, and
// tells done for each what ran and what was charged. A handler is named by its
// pattern and, after a blank, what it takes for the path value; "" is none.
func (r router) spelled(t *testing.T, count int64, key func(route keyfunc.Func) keyfunc.Func, done func(req *http.Request, handler string, keys []string)) {
	t.Helper()
	var l *limiter
	var handler string // of this request
	var routes []route
	for _, s := range spelledRoutes {
		routes = append(routes, route{s.method, s.pattern, func(w http.ResponseWriter, req *http.Request) {
			if handler != "" {
				t.Errorf("%s: two handlers ran", req.RequestURI)
			}
			handler = s.pattern + " " + r.value(req)
		}})
	}
	h := r.serve(routes, func(route keyfunc.Func) *middleware.Middleware {
		l = newLimiter(t, count, key(route))
		return l.Middleware
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for range spellings {
		req := spelling(rng)
		handler, l.store.keys = "", nil
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if (handler != "") != (w.Code == 200) || handler == "" && !slices.Contains(refused, w.Code) {
			t.Errorf("%s %s: %d, and handler %q ran", req.Method, req.RequestURI, w.Code, handler)
		}
		if handler != "" && len(l.store.keys) != 1 {
			t.Errorf("%s %s: handler %q ran and keys %q were charged", req.Method, req.RequestURI, handler, l.store.keys)
		}
		done(req, handler, l.store.keys)
	}
}

// value is what a careful handler takes for the path value.
func (r router) value(req *http.Request) string {
	v := req.PathValue("id")
	if r.encoded != nil && r.encoded(req) {
		if decoded, err := url.PathUnescape(v); err == nil {
			return decoded
		}
	}
	return v
}

const spellings = 2000

// Whatever spelling of a path or a method gets to a handler, it was counted by
// the one key of that handler; and what gets to none makes no keys.
func TestSpellings(t *testing.T) {
	perRoute := func(route keyfunc.Func) keyfunc.Func { return keyfunc.Join(route, perIP) }
	eachRouter(t, func(t *testing.T, r router) {
		keyOf, others, served := map[string]string{}, map[string]bool{}, map[string]bool{}
		r.spelled(t, 1e6, perRoute, func(req *http.Request, handler string, keys []string) {
			for _, key := range keys {
				others[key] = true
			}
			if handler == "" || len(keys) != 1 {
				return
			}
			pattern, _, _ := strings.Cut(handler, " ")
			if first, ok := keyOf[pattern]; ok && first != keys[0] {
				t.Errorf("%s %s: key %q, and the handler of %s also has %q", req.Method, req.RequestURI, keys[0], pattern, first)
			}
			keyOf[pattern], served[req.RequestURI] = keys[0], true
		})
		delete(others, "unmatched|203.0.113.7")
		for _, key := range keyOf {
			delete(others, key)
		}
		for key := range others {
			if route, _, _ := strings.Cut(key, "|"); !slices.Contains(r.mounts, route) {
				t.Errorf("key %q is of no handler", key)
			}
		}
		if len(served) < spellings/50 {
			t.Errorf("only %d spellings got to a handler", len(served))
		}

		ran := map[string]int{}
		r.spelled(t, 3, perRoute, func(_ *http.Request, handler string, _ []string) {
			if pattern, _, _ := strings.Cut(handler, " "); pattern != "" {
				ran[pattern]++
			}
		})
		for pattern, n := range ran {
			if n > 3 {
				t.Errorf("the handler of %s ran %d times, with a limit of 3", pattern, n)
			}
		}
	})
}

// What a handler takes for the path value has one key, and that is of no other.
func TestSpelledValues(t *testing.T) {
	perValue := func(route keyfunc.Func) keyfunc.Func { return keyfunc.Join(route, keyfunc.PathValue("id")) }
	eachRouter(t, func(t *testing.T, r router) {
		if r.name == "around" {
			return // a mux doesn't tell its path values outside
		}
		keyOf, handlerOf := map[string]string{}, map[string]string{}
		r.spelled(t, 1e6, perValue, func(req *http.Request, handler string, keys []string) {
			if handler == "" || len(keys) != 1 {
				return
			}
			if first, ok := keyOf[handler]; ok && first != keys[0] {
				t.Errorf("%s: key %q, and %q also has %q", req.RequestURI, keys[0], handler, first)
			}
			if first, ok := handlerOf[keys[0]]; ok && first != handler {
				t.Errorf("%s: key %q is of %q, and of %q too", req.RequestURI, keys[0], handler, first)
			}
			keyOf[handler], handlerOf[keys[0]] = keys[0], handler
		})
		if len(keyOf) < 10 {
			t.Errorf("only %d values", len(keyOf))
		}
	})
}
