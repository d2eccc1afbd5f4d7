package keyfunc_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

func TestRoute(t *testing.T) {
	var _ keyfunc.Func = keyfunc.Route
	var got []string
	limited := func(w http.ResponseWriter, r *http.Request) {
		k, err := keyfunc.Route(r)
		if err != nil {
			t.Error(err)
		}
		got = append(got, k)
	}
	inner := http.NewServeMux()
	inner.HandleFunc("/report", limited)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", limited)
	mux.HandleFunc("POST /report", limited)
	mux.HandleFunc("/all", limited)
	mux.HandleFunc("/orders/{id}", limited)
	mux.Handle("/v1/", http.StripPrefix("/v1", inner))
	mux.Handle("/v2/", http.StripPrefix("/v2", inner))
	for _, rq := range [][2]string{
		{"GET", "/report"}, {"HEAD", "/report"}, {"POST", "/report"}, {"GET", "/all"}, {"DELETE", "/all"},
		{"GET", "/orders/1"}, {"PUT", "/orders/2"}, {"GET", "/v1/report"}, {"GET", "/v2/report"},
	} {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(rq[0], rq[1], nil))
	}
	want := []string{
		"GET /report", "GET /report", "POST /report", "/all", "/all",
		"/orders/{id}", "/orders/{id}", "/report", "/report",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if k, err := keyfunc.Route(request("/report")); k != "unmatched" || err != nil {
		t.Errorf("outside the mux: got %q, %v", k, err)
	}
}

// routes is a mux that takes note of which of its handlers has served.
type routes struct {
	*http.ServeMux
	patterns []string
	served   []string // the pattern that it was registered by, and r.Pattern
}

// newRoutes is a mux of patterns; see add.
func newRoutes(patterns ...string) *routes {
	m := &routes{ServeMux: http.NewServeMux()}
	for _, p := range patterns {
		m.add(p)
	}
	return m
}

// add registers a pattern. What stands behind " -> " in it is where its handler,
// which is net/http's, redirects to.
func (m *routes) add(pattern string) {
	pattern, to, redirects := strings.Cut(pattern, " -> ")
	if redirects {
		m.Handle(pattern, http.RedirectHandler(to, http.StatusSeeOther))
	} else {
		m.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) { m.served = []string{pattern, r.Pattern} })
	}
	m.patterns = append(m.patterns, pattern)
}

// tryAdd registers a pattern that may conflict with another.
func (m *routes) tryAdd(pattern string) {
	defer func() { _ = recover() }()
	m.add(pattern)
}

// raw is a request as a server reads it, or nil if it can't be read.
func raw(method, host, target string) *http.Request {
	text := method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil
	}
	return r
}

// oldMux tells whether a ServeMux is as it was before Go 1.22.
var oldMux = strings.Contains(os.Getenv("GODEBUG"), "httpmuxgo121=1")

// routeOf is the key of r by m, held to what RouteOf promises of every request.
func routeOf(t *testing.T, m *routes, r *http.Request) string {
	t.Helper()
	what := fmt.Sprintf("%s %s of %s by %q", r.Method, r.RequestURI, r.Host, m.patterns)
	before := *r
	beforeURL := *r.URL
	k, err := keyfunc.RouteOf(m.ServeMux)(r)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if r.URL != before.URL || *r.URL != beforeURL || r.Pattern != before.Pattern {
		t.Fatalf("%s: the request has been changed", what)
	}
	if k != "unmatched" && !slices.Contains(m.patterns, k) {
		t.Fatalf("%s: %q is no pattern", what, k)
	}
	m.served = nil
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	switch {
	case m.served != nil:
		if k != m.served[0] {
			t.Fatalf("%s: got %q, but %q serves it", what, k, m.served[0])
		}
		if k != m.served[1] && !oldMux { // which did not set r.Pattern
			t.Fatalf("%s: got %q, r.Pattern is %q", what, k, m.served[1])
		}
	case w.Code == http.StatusSeeOther: // a redirect that is a handler of m's
		if k != r.Pattern && !oldMux {
			t.Fatalf("%s: got %q, r.Pattern is %q", what, k, r.Pattern)
		}
	case w.Code == http.StatusNotFound, w.Code == http.StatusMethodNotAllowed:
		if k != "unmatched" {
			t.Fatalf("%s: got %q, but the mux answers %d", what, k, w.Code)
		}
	}
	return k
}

func TestRouteOf(t *testing.T) {
	all := []string{
		"/{$}", "/s/", "/s/{$}", "/a/", "/a/{$}", "/a/{x}/", "GET /report", "POST /report", "/orders/{id}", "/files/{rest...}",
		"/literal", "/%7Bid%7D", "/a%2Fb", "example.com/", "example.com/only/", "GET api.example.com/users/{id}", "unmatched/unmatched",
		"/old -> /new", "/old/ -> /new/", "/old/{$} -> /new",
	}
	tests := []struct{ method, host, target, want string }{
		{"GET", "x", "/report", "GET /report"},
		{"HEAD", "x", "/report", "GET /report"},
		{"POST", "x", "/report?x=/a/", "POST /report"},
		{"GET", "x", "/report/", "unmatched"},
		{"PUT", "x", "/report", "unmatched"}, // 405
		{"GET", "x", "/REPORT", "unmatched"},
		{"GET", "x", "/nope", "unmatched"},
		{"GET", "x", "/unmatched", "unmatched"},
		{"GET", "x", "/", "/{$}"},
		{"GET", "x", "/orders/1", "/orders/{id}"},
		{"GET", "x", "/orders/%7Bid%7D", "/orders/{id}"},
		{"GET", "x", "/orders/..%2f1", "/orders/{id}"},
		{"GET", "x", "/orders/%2e%2e", "/orders/{id}"},
		{"GET", "x", "/%6frders/1", "/orders/{id}"},
		{"GET", "x", "/files/1/2//3/", "/files/{rest...}"}, // redirects
		{"GET", "x", "/files/", "/files/{rest...}"},
		{"GET", "x", "/literal", "/literal"},
		{"GET", "x", "/%7Bid%7D", "/%7Bid%7D"},
		{"GET", "x", "/a%2Fb", "/a%2Fb"},
		{"GET", "x", "/s/b", "/s/"},
		// Redirects to the clean path.
		{"GET", "x", "//report", "GET /report"},
		{"GET", "x", "/./report", "GET /report"},
		{"GET", "x", "/y/../report", "GET /report"},
		{"GET", "x", "//s//b", "/s/"},
		{"GET", "x", "//nope//nope", "unmatched"},
		// Redirects to a final slash.
		{"GET", "x", "/a", "/a/{$}"},
		{"GET", "x", "//a", "/a/{$}"},
		{"GET", "x", "/a/y", "/a/{x}/"},
		{"CONNECT", "x", "/a", "/a/{$}"},
		{"CONNECT", "x", "/a/1", "/a/{x}/"},
		// The path of a redirect is not the one that was matched, but is found.
		{"CONNECT", "x", "/a/1%2F", "/a/{x}/"},
		{"GET", "x", "/a/1%2F", "/a/{x}/"},
		// No redirects, though the pattern looks like the clean path.
		{"GET", "x", "/s/b/%2e%2e", "/s/"},
		{"CONNECT", "x", "/s/b/..", "/s/"},
		{"GET", "x", "/old/b/%2e%2e", "/old/"},
		{"GET", "x", "/old", "/old"},
		{"GET", "x", "/old/", "/old/{$}"},
		{"GET", "x", "//old/", "/old/{$}"},
		// Hosts.
		{"GET", "example.com", "/nope", "example.com/"},
		{"GET", "example.com:8080", "/report", "example.com/"},
		{"GET", "example.com", "/only", "example.com/only/"},
		{"GET", "example.com", "//only", "example.com/only/"},
		{"GET", "EXAMPLE.com", "/report", "GET /report"}, // to ServeMux it is another host
		{"GET", "x", "http://example.com/nope", "example.com/"},
		{"GET", "api.example.com", "/users/1", "GET api.example.com/users/{id}"},
		{"GET", "api.example.com", "/users/1/", "unmatched"},
		{"GET", "api.example.com", "/report", "GET /report"},
	}
	for _, tt := range tests {
		m := newRoutes(all...)
		if k := routeOf(t, m, raw(tt.method, tt.host, tt.target)); k != tt.want && !oldMux {
			t.Errorf("%s %s of %s: got %q, want %q", tt.method, tt.target, tt.host, k, tt.want)
		}
		// What mux redirects to has the same key. (It decodes %2F where it redirects
		// to a final slash, and encodes again what it redirects to a clean path.)
		w := httptest.NewRecorder()
		m.ServeHTTP(w, raw(tt.method, tt.host, tt.target))
		if to := w.Header().Get("Location"); to != "" && w.Code != http.StatusSeeOther && !strings.Contains(tt.target, "%") {
			if k := routeOf(t, m, raw(tt.method, tt.host, to)); k != tt.want && !oldMux {
				t.Errorf("%s %s of %s, redirected to %s: got %q, want %q", tt.method, tt.target, tt.host, to, k, tt.want)
			}
		}
	}
}

// A scanner can invent any number of paths, and methods, and not one key.
func TestRouteOfInvented(t *testing.T) {
	keys := map[string]bool{}
	for i := range 100 {
		m := newRoutes("/{x}/", "/{x}/{y}/", "GET /{x}/{y}/{z...}", "example.com/{x}/")
		for _, method := range []string{"GET", "CONNECT", "OPTIONS", fmt.Sprintf("M%d", i)} {
			for _, format := range []string{
				"/%d", "/%d/", "/%d%%2F", "/%d%%2F/", "//%d", "/%d/1", "/%d/1%%2F", "/%d/%%2e%%2e", "/%d/..%%2f..%%2f1",
			} {
				for _, host := range []string{"x", "example.com", fmt.Sprintf("h%d:%d", i, i)} {
					keys[routeOf(t, m, raw(method, host, fmt.Sprintf(format, i)))] = true
				}
			}
		}
	}
	if len(keys) > 5 {
		t.Errorf("%d keys", len(keys))
	}
}

func TestRouteOfIgnoresPattern(t *testing.T) {
	r := request("/report")
	r.Pattern = "/outer/"
	m := newRoutes("/report")
	if k := routeOf(t, m, r); k != "/report" {
		t.Errorf("got %q", k)
	}
	r = request("/nope")
	r.Pattern = "/outer/"
	if k := routeOf(t, m, r); k != "unmatched" {
		t.Errorf("without a route: got %q", k)
	}
	wantMistakes(t, keyfunc.RouteOf(nil), "keyfunc.RouteOf: mux")
	wantMistakes(t, keyfunc.RouteOf(m.ServeMux))
}

func TestRouteOfWhileRegistering(t *testing.T) {
	mux := http.NewServeMux()
	f := keyfunc.RouteOf(mux)
	if k, err := f(request("/late/1")); k != "unmatched" || err != nil {
		t.Errorf("before: got %q, %v", k, err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			mux.Handle(fmt.Sprintf("/late/%d/", i), http.NotFoundHandler())
			f(request("/late/1"))
		})
	}
	wg.Wait()
	if k, err := f(request("/late/1")); k != "/late/1/" || err != nil {
		t.Errorf("after: got %q, %v", k, err)
	}
}

// A program may ask for the mux that was before Go 1.22. What it can't be asked
// while it runs, so these tests run in another process, too.
func TestRouteOfOldMux(t *testing.T) {
	if oldMux {
		return // this is that process
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^(TestRouteOf|TestRouteOfInvented|TestRouteOfIgnoresPattern|FuzzRouteOf)$")
	cmd.Env = append(os.Environ(), "GODEBUG=httpmuxgo121=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// FuzzRouteOf holds the key of any request, by any of many muxes, to be one of
// few, and the pattern of the handler if there is one. Each bit of set is a
// pattern, which is left out where it conflicts with one before.
func FuzzRouteOf(f *testing.F) {
	for _, method := range []string{"GET", "HEAD", "POST", "CONNECT", "OPTIONS", "X"} {
		f.Add(uint32(1<<32-1), method, "x", "/b")
	}
	f.Add(uint32(0), "GET", "x", "/b/c/%2e%2e")
	f.Add(uint32(1), "GET", "x", "/%2e%2e")
	f.Add(uint32(0b11), "GET", "x", "//b/./c/../d//")
	f.Add(uint32(1<<17-1), "GET", "example.com:80", "/b")
	f.Add(uint32(0b10101<<6), "GET", "x", "http://example.com/b%2F")
	f.Add(uint32(1<<10-1), "CONNECT", "x", "/b/c/..")
	f.Add(uint32(1<<3), "CONNECT", "x", "/1%2F")
	f.Add(uint32(1<<20), "CONNECT", "example.com:443", "example.com:443")
	f.Add(uint32(1), "OPTIONS", "x", "*")
	f.Add(uint32(1<<30-1), "GET", "x", "/%7Bx%7D")
	f.Add(uint32(1<<31), "GET", "x", "/%7Brest...%7D/%7B$%7D")
	f.Add(uint32(1<<32-1), "GET", "x", "/r/%2F")
	var muxes []*routes
	for _, patterns := range fuzzRoutes {
		muxes = append(muxes, newRoutes(patterns...))
	}
	f.Fuzz(func(t *testing.T, set uint32, method, host, target string) {
		r := raw(method, host, target)
		if r == nil {
			return
		}
		for _, m := range muxes {
			routeOf(t, m, r.Clone(r.Context()))
		}
		some := newRoutes()
		for i, p := range slices.Concat(fuzzRoutes...) {
			if set>>i&1 != 0 {
				some.tryAdd(p)
			}
		}
		routeOf(t, some, r)
	})
}

var fuzzRoutes = [][]string{
	{"/", "/{$}", "/b/", "/b/{$}", "GET /b/c", "POST /b/c", "/b/c/"},
	{"/{x}/", "/{x}/{$}", "/{x}/{y}/", "GET /{x}/{y}/{z...}", "GET /{x}/{y}/{$}"},
	{"/{x}", "/{x}/{y}", "/%7Bx%7D", "/a%2Fb/{$}", "/%2e%2e"},
	{"/b -> /b/", "/b/{$} -> /b", "/b/ -> /", "/{x}/ -> /"},
	{"example.com/", "example.com/b/", "GET example.com/b", "example.com/b/{$}", "example.com:443/"},
	{"/{rest...}", "CONNECT /b/", "CONNECT /b/{$}", "OPTIONS /", "X /b", "OPTIONS /%7Bx%7D/"},
}

func ExampleRouteOf() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(http.ResponseWriter, *http.Request) {})

	// For a limit that is wrapped around mux, which knows no r.Pattern yet.
	perRoute := keyfunc.RouteOf(mux)
	for _, path := range []string{"/orders/1", "/orders/2", "//orders/3", "/wp-login.php"} {
		fmt.Println(perRoute(httptest.NewRequest("GET", path, nil)))
	}
	// Output:
	// GET /orders/{id} <nil>
	// GET /orders/{id} <nil>
	// GET /orders/{id} <nil>
	// unmatched <nil>
}
