package middleware_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

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

// Whoever is refused fifty times in ten minutes is banned for an hour. The ban is
// looked at and charged in the same round trip as the rules.
func Example_ban() {
	posts, err := algorithms.NewPolicy("posts", algorithms.SlidingLog{}, algorithms.PerHour(1))
	if err != nil {
		log.Fatal(err)
	}
	ban, err := algorithms.Ban{Strikes: 50, Within: 10 * time.Minute, For: time.Hour}.Policy("ban")
	if err != nil {
		log.Fatal(err)
	}
	limit, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: posts, Key: keyfunc.IP(keyfunc.Trust{})}},
		Ban:   ban, // of the key of the first rule; BanKey names another
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for i := range 52 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/posts", nil))
		if i < 2 || i > 49 {
			fmt.Println(i+1, w.Code, w.Header().Get("X-RateLimit-Limit"))
		}
	}
	// Output:
	// 1 200 1
	// 2 429 1
	// 51 429 50
	// 52 429 50
}

// Requests that come together go on one after the other, at the rate: up to ten
// wait for their turn, and more are refused.
func Example_pace() {
	queue, err := algorithms.NewPolicy("reports", algorithms.LeakyBucket{}, algorithms.PerSecond(100).WithBurst(10))
	if err != nil {
		log.Fatal(err)
	}
	limit, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: queue, Key: keyfunc.Const("reports"), Pace: true}},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	start := time.Now()
	for range 3 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/reports", nil))
	}
	fmt.Println("at least 20 ms:", time.Since(start) >= 20*time.Millisecond)
	// Output:
	// at least 20 ms: true
}

// Mistakes come back together when the program starts: where each is, what stands
// there, and what would be right.
func Example_incorrect() {
	perIP, err := algorithms.NewPolicy("ip", algorithms.FixedWindow{}, algorithms.PerMinute(100))
	if err != nil {
		log.Fatal(err)
	}
	_, err = middleware.New(middleware.Config{
		Rules: []middleware.Rule{
			{Policy: perIP, Key: keyfunc.IP(keyfunc.Trust{}), Pace: true},
			{Policy: perIP, Key: keyfunc.HMAC([]byte("swordfish"), keyfunc.Header("X-User-ID"))},
			{PolicyOf: func(*http.Request) *algorithms.Policy { return perIP }, Unit: "bytes"},
		},
		BanKey: keyfunc.Const("everybody"),
		Headers: middleware.Headers{
			Prefix:      "X Rate Limit",
			Reset:       "Retry-After",
			RetryJitter: 2 * time.Hour,
		},
	})
	fmt.Println(err)

	var first *middleware.FieldError
	fmt.Println(errors.As(err, &first), first.Field)
	// Output:
	// weir: Store = <nil>: is missing; memstore.New(memstore.Config{}) keeps counts in memory
	// weir: Rules[0].Pace = true: needs an algorithm that keeps a queue, and fixed-window as it is set up keeps none; use LeakyBucket{}, without Stepped
	// weir: Rules[1].Key: keyfunc.HMAC: len(secret) = 9: must be at least 16 bytes, from crypto/rand
	// weir: Rules[1].Policy = "ip": has the name of Rules[0].Policy; each policy needs a name of its own
	// weir: Rules[2].Key = <nil>: is missing; keyfunc.IP(keyfunc.Trust{}) limits each address, keyfunc.Const all together
	// weir: Rules[2].Unit = "bytes": must be "requests", "content-bytes" or "concurrent-requests"
	// weir: Rules[2].Policies = []: is missing; it lists all that PolicyOf may return
	// weir: Ban = <nil>: is missing, and BanKey is set; algorithms.Ban{…}.Policy makes one
	// weir: Headers.RetryJitter = 2h0m0s: must be 0 to 1h0m0s; it only lengthens the wait
	// weir: Headers.Prefix = "X Rate Limit": must be the beginning of a header's name, such as X-Rate-Limit-
	// weir: Headers.Reset = "Retry-After": is a header with a meaning of its own; choose another name
	// true Store
}
