package adapters_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimw "github.com/go-chi/chi/v5/middleware"
	chiadapter "github.com/weirgo/weir/adapters/chi"
	ginadapter "github.com/weirgo/weir/adapters/gin"
	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// layer is a middleware in each framework's form.
type layer struct {
	std, chi func(http.Handler) http.Handler
	gin      gin.HandlerFunc
}

// plain is a net/http middleware as a layer.
func plain(mw func(http.Handler) http.Handler) layer {
	return layer{mw, mw, func(c *gin.Context) {
		passed := false
		mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			passed = true
			c.Request = r
			c.Next()
		})).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}}
}

func limit(m *middleware.Middleware) layer {
	return layer{m.Handler, chiadapter.Middleware(m), ginadapter.Middleware(m)}
}

// route is a handler and the paths it serves, in net/http's and chi's spelling.
type route struct {
	method, path string
	handler      http.HandlerFunc
}

// app is what each framework is to serve, with the first layer outside.
type app struct {
	layers []layer
	routes []route
}

// frameworks serve an app. Each serves as many spellings of a path as it can.
var frameworks = []struct {
	name  string
	serve func(app) http.Handler
}{
	{"nethttp", func(a app) http.Handler {
		mux := http.NewServeMux()
		wrap := func(h http.Handler) http.Handler {
			for _, l := range slices.Backward(a.layers) {
				h = l.std(h)
			}
			return h
		}
		for _, r := range a.routes {
			mux.Handle(r.method+" "+r.path, wrap(r.handler))
		}
		return mux
	}},
	{"chi", func(a app) http.Handler {
		r := chi.NewRouter()
		r.Use(chimw.CleanPath, chimw.GetHead)
		for _, l := range a.layers {
			r.Use(l.chi)
		}
		for _, route := range a.routes {
			r.Method(route.method, route.path, route.handler)
		}
		return r
	}},
	{"gin", func(a app) http.Handler {
		gin.SetMode(gin.TestMode)
		g := gin.New()
		g.RemoveExtraSlash = true
		for _, l := range a.layers {
			g.Use(l.gin)
		}
		for _, r := range a.routes {
			path := strings.NewReplacer("{", ":", "}", "").Replace(r.path)
			g.Handle(r.method, path, gin.WrapF(r.handler))
			if r.method == http.MethodGet {
				g.HEAD(path, gin.WrapF(r.handler))
			}
		}
		return g
	}},
}

// each runs test under each framework's name.
func each(t *testing.T, test func(t *testing.T, serve func(app) http.Handler)) {
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) { test(t, f.serve) })
	}
}

// clock stands still until it is set.
type clock struct{ elapsed time.Duration }

func (c *clock) now() time.Time { return time.Unix(1e9, 0).Add(c.elapsed) }

// notedStore notes the key of each group's first charge.
type notedStore struct {
	store.Store
	mu   sync.Mutex
	keys []string
}

func (s *notedStore) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.mu.Lock()
	s.keys = append(s.keys, charges[0].Key)
	s.mu.Unlock()
	return s.Store.Take(ctx, charges, results)
}

// Len is how many keys a store in memory has.
func (s *notedStore) Len() int { return s.Store.(*memstore.Store).Len() }

// since gives the keys after the first n.
func (s *notedStore) since(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keys[n:])
}

// limiter allows count a minute, by the clock.
type limiter struct {
	*middleware.Middleware
	clock
	store  *notedStore
	policy *algorithms.Policy
}

func newLimiter(t *testing.T, count int64, key keyfunc.Func, change ...func(*middleware.Config)) *limiter {
	t.Helper()
	var err error
	l := &limiter{}
	if l.policy, err = algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.Limit{Count: count, Period: time.Minute}); err != nil {
		t.Fatal(err)
	}
	l.store = &notedStore{Store: backend(t, l.clock.now)}
	c := middleware.Config{
		Store:  l.store,
		Rules:  []middleware.Rule{{Policy: l.policy, Key: key}},
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	if l.Middleware, err = middleware.New(c); err != nil {
		t.Fatal(err)
	}
	return l
}

// perIP is the key of most cases, perRoute that of those about paths.
var (
	perIP    = keyfunc.IP(keyfunc.Trust{})
	perRoute = keyfunc.Join(keyfunc.Route, perIP)
)

// ask is a request as it comes in from a connection.
type ask struct {
	method, target string   // "" is GET and "/"
	lines          []string // of the header
	body           string
	remote         string // "" is an address like others, "none" is none
}

// from is a request of a peer, to is one for a path.
func from(remote string, lines ...string) ask { return ask{remote: remote, lines: lines} }
func to(target string, lines ...string) ask   { return ask{target: target, lines: lines} }

// post is a request with a body of a type.
func post(target, contentType, body string) ask {
	return ask{method: "POST", target: target, body: body, lines: []string{"Content-Type: " + contentType}}
}

// request is a as net/http's server reads it.
func (a ask) request(t *testing.T) *http.Request {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: %d\r\n",
		cmp.Or(a.method, "GET"), cmp.Or(a.target, "/"), len(a.body))
	for _, line := range a.lines {
		b.WriteString(line + "\r\n")
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(b.String() + "\r\n" + a.body)))
	if err != nil {
		t.Fatal(err)
	}
	if r.RemoteAddr = cmp.Or(a.remote, "203.0.113.7:1"); a.remote == "none" {
		r.RemoteAddr = ""
	}
	return r
}

// want sends requests, one a second from the clock's time on, and gives the
// answers. Those that were counted must have the headers.
func (l *limiter) want(t *testing.T, h http.Handler, want []int, asks ...ask) []*httptest.ResponseRecorder {
	t.Helper()
	var got []int
	var answers []*httptest.ResponseRecorder
	for i, a := range asks {
		w, counted := httptest.NewRecorder(), len(l.store.since(0))
		h.ServeHTTP(w, a.request(t))
		l.elapsed += time.Second
		got, answers = append(got, w.Code), append(answers, w)
		if len(l.store.since(counted)) > 0 {
			wantRateHeaders(t, w.Header(), "")
		}
		wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if (w.Code == 429) != (err == nil && wait >= 1) {
			t.Errorf("request %d: status %d, Retry-After %q", i, w.Code, w.Header()["Retry-After"])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("status %v, want %v", got, want)
	}
	return answers
}

// wantStatuses is want of "GET /path" and the like.
func (l *limiter) wantStatuses(t *testing.T, h http.Handler, want []int, requests ...string) []*httptest.ResponseRecorder {
	t.Helper()
	var asks []ask
	for _, request := range requests {
		method, target, _ := strings.Cut(request, " ")
		asks = append(asks, ask{method: method, target: target})
	}
	return l.want(t, h, want, asks...)
}

// wantRateHeaders holds h to the three headers, and remaining unless it is "".
func wantRateHeaders(t *testing.T, h http.Header, remaining string) {
	t.Helper()
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if h.Get(name) == "" {
			t.Errorf("no %s in %v", name, h)
		}
	}
	if got := h.Get("X-RateLimit-Remaining"); remaining != "" && got != remaining {
		t.Errorf("remaining %s, want %s", got, remaining)
	}
}
