package ginadapter_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	ginadapter "github.com/weirgo/weir/adapters/gin"
	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// limiter allows count a minute; the clock stands still.
func limiter(t testing.TB, count int64, key keyfunc.Func) *middleware.Middleware {
	t.Helper()
	policy, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerMinute(count))
	if err != nil {
		t.Fatal(err)
	}
	m, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{Clock: func() time.Time { return time.Unix(1e9, 0) }}),
		Rules: []middleware.Rule{{Policy: policy, Key: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func engine() *gin.Engine {
	gin.SetMode(gin.TestMode)
	return gin.New()
}

func do(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestRefusalStopsTheChain(t *testing.T) {
	var later, handler, status int
	g := engine()
	g.Use(func(c *gin.Context) { c.Next(); status = c.Writer.Status() })
	g.Use(ginadapter.Middleware(limiter(t, 1, keyfunc.Route)))
	g.Use(func(c *gin.Context) { later++ })
	g.GET("/a/:id", func(c *gin.Context) {
		handler++
		if d, ok := middleware.FromContext(c.Request.Context()); !ok || d.Results[0].Remaining != 0 || d.Charges[0].Key != "/a/:id" {
			t.Errorf("Decision in the handler: %+v, %v", d, ok)
		}
		c.String(201, "ok")
	})
	if w := do(g, "GET", "/a/1"); w.Code != 201 || w.Body.String() != "ok" || w.Header().Get("X-RateLimit-Remaining") != "0" || status != 201 {
		t.Errorf("first: %d %q %v, outside %d", w.Code, w.Body, w.Header(), status)
	}
	w := do(g, "GET", "/a/2")
	if w.Code != 429 || w.Body.String() != "Too Many Requests. Try again in 60 seconds.\n" || w.Header().Get("Retry-After") != "60" {
		t.Errorf("second: %d %q %v", w.Code, w.Body, w.Header())
	}
	if later != 1 || handler != 1 {
		t.Errorf("ran after the limit: %d, handler %d; want 1 each", later, handler)
	}
	if status != 429 {
		t.Errorf("outside, the status is %d", status)
	}
}

// A refusal without a body is a whole answer too.
func TestHead(t *testing.T) {
	for _, target := range []string{"/a", "/nope"} {
		g := engine()
		g.Use(func(c *gin.Context) {
			c.Next()
			if c.Writer.Status() == 429 && !c.Writer.Written() {
				c.String(500, "nobody answered")
			}
		})
		g.Use(ginadapter.Middleware(limiter(t, 1, keyfunc.Const("k"))))
		g.HEAD("/a", func(c *gin.Context) {})
		do(g, "HEAD", target)
		if w := do(g, "HEAD", target); w.Code != 429 || w.Body.Len() != 0 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %q %v", target, w.Code, w.Body, w.Header())
		}
	}
}

func TestNil(t *testing.T) {
	g := engine()
	g.Use(ginadapter.Middleware(nil))
	g.GET("/", func(c *gin.Context) { t.Error("the handler ran") })
	if w := do(g, "GET", "/"); w.Code < 500 {
		t.Errorf("got %d", w.Code)
	}
}

// routeOf is what a key function can know of r's route.
func routeOf(r *http.Request) (string, error) {
	return fmt.Sprintf("%s org=%s id=%s file=%s", r.Pattern, r.PathValue("org"), r.PathValue("id"), r.PathValue("file")), nil
}

func TestRouteAtDecision(t *testing.T) {
	var seen []string
	spy := func() gin.HandlerFunc {
		return ginadapter.Middleware(limiter(t, 1e6, func(r *http.Request) (string, error) {
			route, err := routeOf(r)
			seen = append(seen, route)
			return route, err
		}))
	}
	end := func(c *gin.Context) {}
	g := engine()
	g.Use(spy())
	g.HandleMethodNotAllowed = true
	g.GET("/", end)
	g.POST("/post", end)
	orgs := g.Group("/orgs/:org", spy())
	orgs.GET("", end)
	orgs.GET("/users/:id", spy(), end)
	inner := orgs.Group("/in/:id")
	inner.Use(spy())
	inner.GET("/files/*file", end)

	for _, tt := range []struct {
		target, want string
		limiters     int
	}{
		{"/", "/ org= id= file=", 1},
		{"/orgs/acme", "/orgs/:org org=acme id= file=", 2},
		{"/orgs/acme/users/7?id=8", "/orgs/:org/users/:id org=acme id=7 file=", 3},
		{"/orgs/acme/users/%37", "/orgs/:org/users/:id org=acme id=7 file=", 3},
		{"/orgs/acme/in/7/files/a/b", "/orgs/:org/in/:id/files/*file org=acme id=7 file=/a/b", 3},
		{"/nope", " org= id= file=", 1},
		{"/post", " org= id= file=", 1}, // 405
		{"/orgs/acme/users/7/8", " org= id= file=", 1},
		{"/orgs/acme/in/7/nope", " org= id= file=", 1},
	} {
		seen = nil
		do(g, "GET", tt.target)
		if len(seen) != tt.limiters {
			t.Errorf("%s: %d limiters saw it, want %d", tt.target, len(seen), tt.limiters)
		}
		for _, got := range seen {
			if got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.target, got, tt.want)
			}
		}
	}
}

// Around gin there may be a mux with a pattern of its own: that is not the key
// of a request that gin has no route for.
func TestInsideServeMux(t *testing.T) {
	g := engine()
	g.Use(ginadapter.Middleware(limiter(t, 1, keyfunc.Route)))
	g.GET("/v1/:id", func(c *gin.Context) { c.String(200, c.Request.PathValue("tenant")+c.Request.PathValue("id")) })
	mux := http.NewServeMux()
	mux.Handle("/{tenant}/", g)
	mux.Handle("/other/", g)
	if w := do(mux, "GET", "/v1/7"); w.Code != 200 || w.Body.String() != "v17" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
	for i, target := range []string{"/nope/1", "/other/1"} {
		if w := do(mux, "GET", target); w.Code != []int{404, 429}[i] {
			t.Errorf("%s: %d; want one budget for all without a route", target, w.Code)
		}
	}
}

// However the path is spelled, the key is one, also where gin leaves the values
// as they are; the handler gets what gin gives.
func TestPathValuesAreDecoded(t *testing.T) {
	for name, set := range map[string]func(*gin.Engine){
		"UseRawPath":                           func(g *gin.Engine) { g.UseRawPath = true },
		"UseEscapedPath":                       func(g *gin.Engine) { g.UseEscapedPath = true },
		"UseEscapedPath with RemoveExtraSlash": func(g *gin.Engine) { g.UseEscapedPath, g.RemoveExtraSlash = true, true },
	} {
		g := engine()
		g.UnescapePathValues = false
		set(g)
		limit := ginadapter.Middleware(limiter(t, 1, keyfunc.Join(keyfunc.Route, keyfunc.PathValue("phone"))))
		handler := func(c *gin.Context) { c.String(200, c.Request.PathValue("phone")+" "+c.Param("phone")) }
		g.GET("/send/:phone", limit, handler)
		g.GET(`/a\:phone/:org/:phone/end`, limit, handler)
		g.GET("/files/:org/*phone", limit, handler)
		for _, format := range []string{"/send/%s", "/a:phone/%%2531/%s/end", "/files/x%%2531/%s", "/files/x/y//./%s/"} {
			if name != "UseEscapedPath with RemoveExtraSlash" && format == "/files/x/y//./%s/" {
				continue // each is another file
			}
			for i, phone := range []string{"+1%32%2F3", "%2B12%2F3", "+%31%32%2f3", "%2b1%32%2F3"} {
				target := fmt.Sprintf(format, phone)
				w := do(g, "GET", target)
				if i > 0 && w.Code != 429 {
					t.Errorf("%s, %s: %d, want 429", name, target, w.Code)
				}
				value, param, _ := strings.Cut(w.Body.String(), " ")
				if i == 0 && (w.Code != 200 || value != param || !strings.Contains(param, phone)) {
					t.Errorf("%s, %s: %d %q", name, target, w.Code, w.Body)
				}
			}
			// What decodes to another only in a second step is another.
			if w := do(g, "GET", fmt.Sprintf(format, "%252B12%2F3")); w.Code != 200 {
				t.Errorf("%s, %s: %d, want 200", name, format, w.Code)
			}
		}
	}
}

// What gin has decoded is not decoded again, whatever it looks like.
func TestPathValuesAreDecodedOnce(t *testing.T) {
	for name, set := range map[string]func(*gin.Engine){
		"plain":            func(g *gin.Engine) {},
		"RemoveExtraSlash": func(g *gin.Engine) { g.RemoveExtraSlash = true },
		"UseRawPath":       func(g *gin.Engine) { g.UseRawPath = true },
		"UseEscapedPath":   func(g *gin.Engine) { g.UseEscapedPath = true },
	} {
		g := engine()
		set(g)
		g.Use(ginadapter.Middleware(limiter(t, 1, keyfunc.Join(keyfunc.PathValue("org"), keyfunc.PathValue("id")))))
		g.GET("/:org/:id", func(c *gin.Context) {
			d, _ := middleware.FromContext(c.Request.Context())
			if want := c.Param("org") + "|" + c.Param("id"); d.Charges[0].Key != want {
				t.Errorf("%s: key %q, want %q", name, d.Charges[0].Key, want)
			}
		})
		for _, target := range []string{"/a/%31", "/a/%2531", "/a/%252531", "/%2531/%25%331", "/%2531/%2525", "/a/%25", "/%41%25/%2541%2500"} {
			if w := do(g, "GET", target); w.Code != 200 {
				t.Errorf("%s, %s: %d", name, target, w.Code)
			}
		}
	}
}

// A pattern may have a name twice, and the handler's value is the first.
func TestNameTwice(t *testing.T) {
	g := engine()
	g.Use(ginadapter.Middleware(limiter(t, 1, keyfunc.PathValue("id"))))
	g.GET("/orgs/:id/users/:id", func(c *gin.Context) {
		if c.Param("id") != c.Request.PathValue("id") {
			t.Errorf("value %q, and for gin %q", c.Request.PathValue("id"), c.Param("id"))
		}
	})
	for i, target := range []string{"/orgs/1/users/1", "/orgs/1/users/2", "/orgs/2/users/1"} {
		if w := do(g, "GET", target); w.Code != []int{200, 429, 200}[i] {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

// Handlers of what has no route can work too, and share one budget.
func TestNoRoute(t *testing.T) {
	var keys []string
	ran := map[string]int{}
	count := func(name string) gin.HandlerFunc { return func(c *gin.Context) { ran[name]++ } }
	limit := func(count int64) gin.HandlerFunc {
		return ginadapter.Middleware(limiter(t, count, func(r *http.Request) (string, error) {
			key, err := keyfunc.Route(r)
			keys = append(keys, key+r.PathValue("id"))
			return key, err
		}))
	}
	for name, use := range map[string]func(*gin.Engine){
		"engine": func(g *gin.Engine) {
			g.Use(limit(3))
			g.NoRoute(count("no route"))
			g.NoMethod(count("no method"))
		},
		"handler": func(g *gin.Engine) {
			l := limit(3)
			g.NoRoute(l, count("no route"))
			g.NoMethod(l, count("no method"))
		},
		"both": func(g *gin.Engine) {
			l := limit(3)
			g.Use(l)
			g.NoRoute(l, count("no route"))
			g.NoMethod(l, count("no method"))
		},
	} {
		g := engine()
		g.HandleMethodNotAllowed = true
		use(g)
		g.POST("/post/:id", func(*gin.Context) {})
		g.Group("/group", func(c *gin.Context) { t.Error("a group's middleware ran where it has no route") }).GET("/:id", func(*gin.Context) {})
		keys, ran = nil, map[string]int{}
		refused := 0
		for _, request := range []string{"GET /nope/1", "GET /post/7", "OPTIONS /post/7", "HEAD /post/7", "FOO /post/7",
			"GET /group/7/8", "GET /group//7/", "CONNECT /x", "OPTIONS /nope", "GET /post%2F7", "GET /%00"} {
			method, target, _ := strings.Cut(request, " ")
			if do(g, method, target).Code == 429 {
				refused++
			}
		}
		if ran["no route"]+ran["no method"] != 3 || ran["no method"] == 0 || refused != 8 {
			t.Errorf("%s: the handlers ran %v times, and %d were refused", name, ran, refused)
		}
		for _, key := range keys {
			if key != "unmatched" {
				t.Errorf("%s: key %q", name, key)
			}
		}
	}
}

// HandleContext gives the request to another route, which doesn't count it again.
func TestHandleContext(t *testing.T) {
	g := engine()
	g.Use(ginadapter.Middleware(limiter(t, 2, keyfunc.Route)))
	ran := 0
	g.GET("/index", func(c *gin.Context) { ran++; c.String(200, "index") })
	g.NoRoute(func(c *gin.Context) {
		c.Request.URL.Path = "/index"
		g.HandleContext(c)
	})
	for i, target := range []string{"/a", "/b", "/c", "/index", "/index", "/index"} {
		if w := do(g, "GET", target); w.Code != []int{200, 200, 429}[i%3] {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	if ran != 4 {
		t.Errorf("ran %d times, want 2 of each", ran)
	}
}

// gin redirects before it calls any middleware.
func TestRedirects(t *testing.T) {
	g := engine()
	g.RedirectFixedPath = true
	calls := 0
	g.Use(ginadapter.Middleware(limiter(t, 1, func(*http.Request) (string, error) { calls++; return "k", nil })))
	g.GET("/a/:id", func(*gin.Context) { t.Error("the handler ran") })
	for _, target := range []string{"/a/1/", "/A/1", "//a/1", "/x/../a/1"} {
		if w := do(g, "GET", target); w.Code != 301 || calls != 0 {
			t.Errorf("%s: %d, and %d were counted", target, w.Code, calls)
		}
	}
}
