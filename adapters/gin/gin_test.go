package ginadapter_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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
