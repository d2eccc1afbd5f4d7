package adapters_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
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
	top    bool // net/http: the layers are around the mux, not around each handler
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
			if a.top {
				mux.Handle(r.method+" "+r.path, r.handler)
			} else {
				mux.Handle(r.method+" "+r.path, wrap(r.handler))
			}
		}
		if a.top {
			return wrap(mux)
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
type clock struct{ seconds int64 }

func (c *clock) now() time.Time { return time.Unix(1e9+c.seconds, 0) }

// limiter allows count a minute, by the clock.
type limiter struct {
	*middleware.Middleware
	clock
	store  *memstore.Store
	policy *algorithms.Policy
}

func newLimiter(t *testing.T, count int64, key keyfunc.Func, change ...func(*middleware.Config)) *limiter {
	t.Helper()
	var err error
	l := &limiter{}
	if l.policy, err = algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.Limit{Count: count, Period: time.Minute}); err != nil {
		t.Fatal(err)
	}
	l.store = memstore.New(memstore.Config{Clock: l.clock.now})
	c := middleware.Config{Store: l.store, Rules: []middleware.Rule{{Policy: l.policy, Key: key}}}
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

func do(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, "/", nil)
	r.RemoteAddr = "203.0.113.7:1"
	r.URL.Path, r.RequestURI = target, target // "//" is not a host
	h.ServeHTTP(w, r)
	return w
}

// wantStatuses sends requests, one a second from 0 on, and gives the answers.
func (l *limiter) wantStatuses(t *testing.T, h http.Handler, want []int, requests ...string) []*httptest.ResponseRecorder {
	t.Helper()
	var got []int
	var answers []*httptest.ResponseRecorder
	for i, request := range requests {
		l.seconds = int64(i)
		method, target, _ := strings.Cut(request, " ")
		w := do(h, method, target)
		got, answers = append(got, w.Code), append(answers, w)
	}
	if !slices.Equal(got, want) {
		t.Errorf("status %v, want %v", got, want)
	}
	return answers
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
