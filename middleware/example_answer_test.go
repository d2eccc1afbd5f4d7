package middleware_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// A customer's plan chooses the limit, and nil is unlimited.
func Example_plans() {
	free, err := algorithms.NewPolicy("free", algorithms.GCRA{}, algorithms.PerDay(100))
	if err != nil {
		log.Fatal(err)
	}
	paid, err := algorithms.NewPolicy("paid", algorithms.GCRA{}, algorithms.PerDay(100_000))
	if err != nil {
		log.Fatal(err)
	}
	plans := map[string]*algorithms.Policy{"free": free, "paid": paid}
	limit, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{
			PolicyOf: func(r *http.Request) *algorithms.Policy { return plans[r.Header.Get("X-Plan")] },
			Policies: []*algorithms.Policy{free, paid},
			Key:      keyfunc.Header("X-Account"),
		}},
		Headers: middleware.Headers{Dialect: middleware.Draft11},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, plan := range []string{"free", "paid", "staff"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Plan", plan)
		r.Header.Set("X-Account", "a1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "free";q=100;w=86400
	// 200 "paid";q=100000;w=86400
	// 200
}

// Only failures to log in count, and a success clears the slate.
func Example_logIn() {
	failures, err := algorithms.NewPolicy("failures", algorithms.GCRA{}, algorithms.PerHour(3))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{
			Policy: failures,
			Key:    keyfunc.Map(keyfunc.BasicUser, strings.ToLower),
			Refund: func(status int) bool { return status != http.StatusUnauthorized },
		}},
		Headers: middleware.Headers{When: middleware.OnRefusal},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if d, ok := middleware.FromContext(r.Context()); ok {
			if err := limit.Forget(r.Context(), d); err != nil {
				log.Print(err)
			}
		}
	}))
	for _, password := range []string{"wrong", "wrong", "right", "wrong", "wrong", "wrong", "right"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("alice", password)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(password, w.Code)
	}
	// Output:
	// wrong 401
	// wrong 401
	// right 200
	// wrong 401
	// wrong 401
	// wrong 401
	// right 429
}

// A limit on trial refuses nothing; an observer sees what it would have refused.
func Example_shadow() {
	strict, err := algorithms.NewPolicy("strict", algorithms.GCRA{}, algorithms.PerHour(2))
	if err != nil {
		log.Fatal(err)
	}
	would := 0
	limit, err := middleware.New(middleware.Config{
		Store:  memstore.New(memstore.Config{}),
		Rules:  []middleware.Rule{{Policy: strict, Key: keyfunc.IP(keyfunc.Trust{})}},
		Shadow: true,
		Observe: func(_ context.Context, e middleware.Event) {
			for rule := range e.Rules() {
				if rule.Result.Limited {
					would++
				}
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 5 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Print(w.Code, " ")
	}
	fmt.Println("would have refused", would)
	// Output: 200 200 200 200 200 would have refused 3
}
