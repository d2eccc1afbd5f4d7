package chiadapter_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"
	chiadapter "github.com/weirgo/weir/adapters/chi"
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

	r := chi.NewRouter()
	r.Use(chiadapter.Middleware(limit))
	r.Get("/orders/{id}", func(w http.ResponseWriter, r *http.Request) {})
	r.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) {})

	for _, path := range []string{"/orders/1", "/orders/2", "/users/1"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /orders/1 200
	// /orders/2 429
	// /users/1 200
}
