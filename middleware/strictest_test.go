package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// The headers and the body speak of the strictest rule, and only of rules that
// are enforced.
func TestStrictestRule(t *testing.T) {
	clock := storetest.NewClock()
	h := limiter(t, clock, algorithms.PerMinute(5), algorithms.PerHour(1), algorithms.PerDay(100)).Handler(ok)
	if w := serve(h); w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "1" || w.Header().Get("X-RateLimit-Remaining") != "0" || w.Header().Get("X-RateLimit-Reset") != "3600" {
		t.Errorf("the first: %d %v", w.Code, w.Header())
	}
	for range 10 {
		w := serve(h, accept("application/json"))
		if w.Code != 429 || w.Header().Get("X-RateLimit-Limit") != "1" || w.Header().Get("Retry-After") != "3600" {
			t.Errorf("the second: %d %v", w.Code, w.Header())
		}
	}
	// Refusals charged nothing: four of five are left for the minute.
	clock.Advance(time.Hour)
	if w := serve(h); w.Code != 200 {
		t.Errorf("an hour later: %d", w.Code)
	}
}

// A cost above the capacity is refused without a promise.
func TestNever(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{
			Policy: policy(t, "p", algorithms.PerMinute(5)), Key: keyfunc.Const("k"),
			Cost: func(r *http.Request) int64 { return r.ContentLength },
		}},
	})
	w := serve(m.Handler(ok), func(r *http.Request) { r.ContentLength = 6 })
	if _, there := w.Header()["Retry-After"]; w.Code != 429 || there || w.Header().Get("X-RateLimit-Remaining") != "5" ||
		w.Body.String() != "Too Many Requests. This request asks for more than the limit ever allows.\n" {
		t.Errorf("cost 6 of 5: %d %v %q", w.Code, w.Header(), w.Body)
	}
	// A cost of 0 looks, a negative one is a mistake of the program.
	if w := serve(m.Handler(ok), func(r *http.Request) { r.ContentLength = 0 }); w.Code != 200 || w.Header().Get("X-RateLimit-Remaining") != "5" {
		t.Errorf("cost 0: %d %v", w.Code, w.Header())
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.ContentLength = -1
	if _, err := m.Check(r); !isFieldError(err) {
		t.Errorf("cost -1: %v", err)
	}
}

func isFieldError(err error) bool {
	var mistake *middleware.FieldError
	return errors.As(err, &mistake)
}

// Of two refusals the one with the longer wait is told, wherever it stands, and
// Never is the longest.
func TestStrictestRefusal(t *testing.T) {
	for _, limits := range [][]algorithms.Limit{{algorithms.PerHour(1), algorithms.PerMinute(1)}, {algorithms.PerMinute(1), algorithms.PerHour(1)}} {
		h := limiter(t, storetest.NewClock(), limits...).Handler(ok)
		serve(h)
		wantHeaders(t, serve(h), map[string]string{"Retry-After": "3600", "X-RateLimit-Limit": "1", "X-RateLimit-Reset": "3600"})
	}
	for _, first := range []int{0, 1} {
		cost := int64(1)
		c := middleware.Config{Store: memstore.New(memstore.Config{}), Rules: make([]middleware.Rule, 2)}
		for i := range c.Rules {
			c.Rules[i^first] = middleware.Rule{
				Policy: policy(t, fmt.Sprint("p", i), algorithms.PerHour(int64(i+1))), Key: keyfunc.Const("k"),
				Cost: func(*http.Request) int64 { return cost },
			}
		}
		h := newMiddleware(t, c).Handler(ok)
		serve(h)
		cost = 2
		wantHeaders(t, serve(outer(h, map[string]string{"Retry-After": "7"})), map[string]string{"Retry-After": "", "X-RateLimit-Limit": "1"})
	}
}

// With one Middleware inside another, a refusal comes before a pass with a longer
// wait, though that has to be waited for too; and of passes the strictest is told,
// however many there are.
func TestStrictestOfNested(t *testing.T) {
	clock := storetest.NewClock()
	h := limiter(t, clock, algorithms.PerHour(2)).Handler(limiter(t, clock, algorithms.PerMinute(1)).Handler(ok))
	serve(h)
	wantHeaders(t, serve(h), map[string]string{"Retry-After": "1800", "X-RateLimit-Limit": "1", "X-RateLimit-Reset": "60"})
	h = limiter(t, clock, algorithms.PerHour(3)).Handler(limiter(t, clock, algorithms.PerMinute(100)).Handler(limiter(t, clock, algorithms.PerMinute(50)).Handler(ok)))
	wantHeaders(t, serve(h), map[string]string{"X-RateLimit-Limit": "3", "X-RateLimit-Remaining": "2"})
}

// More rules than a node has room for are decided like a few.
func TestManyRules(t *testing.T) {
	var limits []algorithms.Limit
	for n := range int64(9) {
		limits = append(limits, algorithms.PerHour(9-n))
		h := limiter(t, storetest.NewClock(), limits...).Handler(ok)
		wantHeaders(t, serve(h), map[string]string{"X-RateLimit-Limit": fmt.Sprint(9 - n), "X-RateLimit-Remaining": fmt.Sprint(8 - n)})
	}
}

// What a handler adds to one header does not show in another.
func TestHandlerAddsHeaders(t *testing.T) {
	m := limiter(t, storetest.NewClock(), algorithms.PerHour(9))
	w := serve(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Add("X-RateLimit-Limit", "7") })))
	if got := fmt.Sprint(w.Header()["X-Ratelimit-Limit"], w.Header()["X-Ratelimit-Remaining"]); got != "[9 7] [8]" {
		t.Error(got)
	}
}

// Any part of a second counts as one in Retry-After.
func TestRetryAfterRoundsUp(t *testing.T) {
	m := limiter(t, storetest.NewClock(), algorithms.Limit{Count: 1, Period: time.Second + 500*time.Microsecond})
	serve(m.Handler(ok))
	wantHeaders(t, serve(m.Handler(ok)), map[string]string{"Retry-After": "2"})
}
