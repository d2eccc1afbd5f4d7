package adapters_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
)

// refused are the answers to a request that the handler isn't asked for.
var refused = []int{301, 307, 308, 400, 404, 405, 429}

func path01(t *testing.T) {
	const path = "/api/v2/users/validate-password"
	eachRouter(t, func(t *testing.T, r router) {
		ran := 0
		l, h := r.limited(t, 2, route{"PUT", path, func(http.ResponseWriter, *http.Request) { ran++ }})
		l.wantStatuses(t, h, []int{200, 200}, "PUT "+path, "PUT "+path)
		for _, odd := range []string{"/api/v2/users//validate-password", "//api/v2/users/validate-password"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, ask{method: "PUT", target: odd}.request(t))
			if r.folds && w.Code != 429 || !slices.Contains(refused, w.Code) {
				t.Errorf("%s: %d", odd, w.Code)
			}
		}
		if ran != 2 {
			t.Errorf("the handler ran %d times, want 2", ran)
		}
	})
}

// lower makes a router that knows no letter case and no final slash.
func lower(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.Path, u.RawPath = strings.TrimSuffix(strings.ToLower(u.Path), "/"), ""
		r.URL = &u
		next.ServeHTTP(w, r)
	})
}

func path02(t *testing.T) {
	requests := slices.Concat(slices.Repeat([]string{"/oauth/register"}, 10),
		slices.Repeat([]string{"/oauth/register/"}, 4), slices.Repeat([]string{"/OAuth/Register"}, 4))
	eachRouter(t, func(t *testing.T, r router) {
		for name, outer := range map[string]func(http.Handler) http.Handler{
			"as it is":         func(h http.Handler) http.Handler { return h },
			"case-insensitive": lower,
		} {
			ran := 0
			l, h := r.limited(t, 10, route{"POST", "/oauth/register", func(http.ResponseWriter, *http.Request) { ran++ }})
			h = outer(h)
			got := map[int]int{}
			for _, target := range requests {
				w, counted := httptest.NewRecorder(), len(l.store.since(0))
				h.ServeHTTP(w, ask{method: "POST", target: target}.request(t))
				got[w.Code]++
				if name == "case-insensitive" || len(l.store.since(counted)) > 0 {
					wantRateHeaders(t, w.Header(), "")
				}
				if w.Code != 200 && !slices.Contains(refused, w.Code) {
					t.Errorf("%s, %s: %d", name, target, w.Code)
				}
			}
			if got[200] != 10 || ran != 10 || name == "case-insensitive" && got[429] != 8 {
				t.Errorf("%s: statuses %v, and the handler ran %d times", name, got, ran)
			}
		}
	})
}

func path03(t *testing.T) {
	const path = "/api/otc/send"
	eachRouter(t, func(t *testing.T, r router) {
		ran := 0
		_, h := r.limited(t, 1, route{"POST", path, func(http.ResponseWriter, *http.Request) { ran++ }})
		server := httptest.NewServer(h)
		defer server.Close()
		for i, target := range []string{
			path, "/api/otc/%73end", "/./api/otc/send", "/api/x/../otc/send", // the case
			"/api/otc/%73%65%6E%64", "/api/otc/%73%65%6e%64", "/api/x/%2e%2e/otc/send", "/api/%2E/otc/send", "/api%2Fotc%2Fsend",
			"//api/otc/send", "/api/otc/send/", "/api/otc/send/.", "/api/otc//send", "http://elsewhere.example" + path,
			"http://elsewhere.example/" + path, path + "?", path + "?x=1", "/API/OTC/SEND", "/api/otc/send%20", "/api/otc/send;x",
			"/api/otc/send%00", "/api/otc/%2573end", `/api\otc\send`, "/../api/otc/send", "/..%2Fapi/otc/send",
		} {
			res := send(t, server, "POST "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
			if first := i == 0; first != (res.StatusCode == 200) || !first && !slices.Contains(refused, res.StatusCode) {
				t.Errorf("%s: %d", target, res.StatusCode)
			}
		}
		if ran != 1 {
			t.Errorf("sent %d times, want 1", ran)
		}
	})
}

func path05(t *testing.T) {
	eachRouter(t, func(t *testing.T, r router) {
		l, h := r.limited(t, 5, route{"GET", "/orders/{id}", fine})
		got := map[int]int{}
		n := 1000
		if r.partial || r.name == "plain" || r.name == "around" {
			n = 10_000
		}
		for i := range n {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, to("/nope/"+strconv.Itoa(i)).request(t))
			got[w.Code]++
		}
		found := 5
		if r.partial {
			found = n // all are 404, and no key is stored
		}
		if got[404] != found || got[429] != n-found {
			t.Errorf("statuses %v", got)
		}
		if n := l.store.Len(); n > 2 || r.partial && n > 0 {
			t.Errorf("%d keys", n)
		}
	})
}

// override lets a header change the method.
func override(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if method := r.Header.Get("X-HTTP-Method-Override"); method != "" {
			r.Method = method
		}
		next.ServeHTTP(w, r)
	})
}

// only leaves a rule out for other methods.
func only(method string, key keyfunc.Func) keyfunc.Func {
	return func(r *http.Request) (string, error) {
		if m, _ := keyfunc.Method(r); m != method {
			return "", keyfunc.ErrSkip
		}
		return key(r)
	}
}

func path06(t *testing.T) {
	const header = "X-HTTP-Method-Override: POST"
	asks := []ask{
		{method: "POST", target: "/login"}, {method: "POST", target: "/login"},
		{method: "PUT", target: "/login", lines: []string{header}}, {method: "GET", target: "/login", lines: []string{header}},
	}
	want := []int{200, 200, 429, 429}
	eachRouter(t, func(t *testing.T, r router) {
		routes := []route{{"POST", "/login", fine}}
		t.Run("outside", func(t *testing.T) {
			var l *limiter
			h := r.serve(routes, func(route keyfunc.Func) *middleware.Middleware {
				l = newLimiter(t, 2, only("POST", keyfunc.Join(route, perIP)))
				return l.Middleware
			})
			l.want(t, override(h), want, asks...)
		})
		// A rule without a method counts what it doesn't know yet.
		t.Run("inside", func(t *testing.T) {
			l := newLimiter(t, 2, perIP)
			other := newLimiter(t, 100, perIP)
			h := r.serve(routes, func(keyfunc.Func) *middleware.Middleware { return other.Middleware })
			l.want(t, l.Handler(override(h)), want, asks...)
		})
	})
}

func path07(t *testing.T) {
	eachRouter(t, func(t *testing.T, r router) {
		ran := 0
		l, h := r.limited(t, 3, route{"GET", "/report", func(http.ResponseWriter, *http.Request) { ran++ }})
		head := l.wantStatuses(t, h, []int{200, 200, 200, 429, 429},
			"GET /report", "HEAD /report", "HEAD /report", "HEAD /report", "GET /report")[3]
		wantRateHeaders(t, head.Header(), "0")
		if head.Body.Len() != 0 {
			t.Errorf("the answer to HEAD has a body: %q", head.Body)
		}
		if ran != 3 {
			t.Errorf("the handler ran %d times, want 3", ran)
		}
	})
}

func path08(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 100, only("GET", perIP), func(c *middleware.Config) {
			c.Rules = append(c.Rules, middleware.Rule{Policy: newPolicy(t, "post", 10, c.Rules[0].Policy.Limit().Period), Key: only("POST", perIP)})
		})
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", fine}, {"POST", "/", fine}}})
		count := func(method string, n int) map[int]int {
			got := map[int]int{}
			for range n {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, ask{method: method}.request(t))
				got[w.Code]++
				wantRateHeaders(t, w.Header(), "")
			}
			return got
		}
		if got := count("GET", 50); got[200] != 50 {
			t.Errorf("GET: statuses %v", got)
		}
		if got := count("POST", 11); got[200] != 10 || got[429] != 1 {
			t.Errorf("POST: statuses %v", got)
		}
		if got := count("HEAD", 51); got[200] != 50 || got[429] != 1 {
			t.Errorf("HEAD: statuses %v", got)
		}
	})
}
