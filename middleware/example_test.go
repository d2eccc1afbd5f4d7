package middleware_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// A hundred requests a minute for each address, twenty of them at once.
func Example() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})

	perIP, err := algorithms.NewPolicy("ip", algorithms.GCRA{}, algorithms.PerMinute(100).WithBurst(20))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: perIP, Key: keyfunc.IP(keyfunc.Trust{})}},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: ":8080", Handler: limit.Handler(mux)}

	w := httptest.NewRecorder()
	server.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code)
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		fmt.Printf("%s: %s\n", name, w.Header().Get(name))
	}
	// Output:
	// 200
	// X-RateLimit-Limit: 20
	// X-RateLimit-Remaining: 19
	// X-RateLimit-Reset: 1
}

// Several rules are one decision: a request that one of them refuses is not
// counted by the others.
func Example_severalRules() {
	perMinute, err := algorithms.NewPolicy("post-minute", algorithms.GCRA{}, algorithms.PerMinute(1))
	if err != nil {
		log.Fatal(err)
	}
	perDay, err := algorithms.NewPolicy("post-day", algorithms.GCRA{}, algorithms.PerDay(50))
	if err != nil {
		log.Fatal(err)
	}
	// The header is set by the gateway, which has checked who it is.
	user := keyfunc.First(keyfunc.Header("X-User-ID"), keyfunc.IP(keyfunc.Trust{}))
	limit, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: perMinute, Key: user}, {Policy: perDay, Key: user}},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d, ok := middleware.FromContext(r.Context()); ok {
			fmt.Fprintf(w, "%d more today", d.Results[1].Remaining)
		}
	}))
	for range 2 {
		r := httptest.NewRequest("POST", "/posts", nil)
		r.Header.Set("X-User-ID", "u1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Retry-After"), w.Body)
	}
	// Output:
	// 200  49 more today
	// 429 60 Too Many Requests. Try again in 60 seconds.
}
