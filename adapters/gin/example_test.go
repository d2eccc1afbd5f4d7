package ginadapter_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/gin-gonic/gin"
	ginadapter "github.com/weirgo/weir/adapters/gin"
	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

func ExampleMiddleware() {
	perRoute, err := algorithms.NewPolicy("route", algorithms.GCRA{}, algorithms.PerMinute(1))
	if err != nil {
		panic(err)
	}
	limit, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: perRoute, Key: keyfunc.Join(keyfunc.Route, keyfunc.IP(keyfunc.Trust{}))}},
	})
	if err != nil {
		panic(err)
	}

	gin.SetMode(gin.ReleaseMode)
	g := gin.New()
	g.Use(ginadapter.Middleware(limit))
	g.GET("/orders/:id", func(c *gin.Context) {})
	g.GET("/users/:id", func(c *gin.Context) {})

	for _, path := range []string{"/orders/1", "/orders/2", "/users/1"} {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /orders/1 200
	// /orders/2 429
	// /users/1 200
}
