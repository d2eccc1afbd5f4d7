package middleware_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

func always(int) bool           { return true }
func serverError(code int) bool { return code >= 500 }

// left is what remains for k.
func left(t testing.TB, s store.Store, p *algorithms.Policy) int64 {
	t.Helper()
	r, err := store.Take(context.Background(), s, p, "k", 0)
	if err != nil {
		t.Fatal(err)
	}
	return r.Remaining
}

// wantLeft wants so much to remain for k, policy by policy.
func wantLeft(t testing.TB, s store.Store, policies []*algorithms.Policy, want ...int64) {
	t.Helper()
	var got []int64
	for _, p := range policies {
		got = append(got, left(t, s, p))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d remain, want %d", got, want)
	}
}

// status answers with a status.
func status(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// refunding is a Config of one rule, which refund asks for the status, and its
// policy of 10 an hour.
func refunding(t testing.TB, refund func(int) bool) (middleware.Config, *algorithms.Policy) {
	t.Helper()
	p := policyOf(t, "p", algorithms.SlidingLog{}, algorithms.PerHour(10)) // in which a refund is exact, by any clock
	return middleware.Config{
		Store:  memstore.New(memstore.Config{}),
		Rules:  []middleware.Rule{{Policy: p, Key: keyfunc.Const("k"), Refund: refund}},
		Logger: slog.New(slog.DiscardHandler),
	}, p
}

// Each rule gives back by its own Refund what it took itself.
func TestRefundByStatus(t *testing.T) {
	failures := func(code int) bool { return code < 500 && code != 401 }
	free, gold := policy(t, "free", algorithms.PerHour(10)), policy(t, "gold", algorithms.PerHour(10))
	named := func(name string) *algorithms.Policy { return policy(t, name, algorithms.PerHour(10)) }
	key := keyfunc.Const("k")
	cost := func(n int64) func(*http.Request) int64 { return func(*http.Request) int64 { return n } }
	rules := []struct {
		rule middleware.Rule
		left [3]int64 // after 200, 401 and 502
	}{
		{middleware.Rule{Policy: named("all"), Key: key}, [3]int64{9, 9, 9}},
		{middleware.Rule{Policy: named("failures"), Key: key, Refund: failures}, [3]int64{10, 9, 9}},
		{middleware.Rule{Policy: named("served"), Key: key, Refund: serverError}, [3]int64{9, 9, 10}},
		{middleware.Rule{Policy: named("shadow"), Key: key, Refund: serverError, Shadow: true}, [3]int64{9, 9, 10}},
		{middleware.Rule{Policy: named("left-out"), Key: leftOut, Refund: always}, [3]int64{10, 10, 10}},
		{middleware.Rule{Policy: named("cost"), Key: key, Refund: serverError, Cost: cost(4)}, [3]int64{6, 6, 10}},
		{middleware.Rule{Policy: named("look"), Key: key, Refund: always, Cost: cost(0)}, [3]int64{10, 10, 10}},
		{middleware.Rule{
			PolicyOf: func(*http.Request) *algorithms.Policy { return gold }, Policies: []*algorithms.Policy{free, gold},
			Key: key, Refund: serverError, Cost: cost(2),
		}, [3]int64{8, 8, 10}},
		{middleware.Rule{
			PolicyOf: func(*http.Request) *algorithms.Policy { return nil }, Policies: []*algorithms.Policy{named("unlimited")},
			Key: key, Refund: always,
		}, [3]int64{10, 10, 10}},
	}
	for i, code := range []int{200, 401, 502} {
		synctest.Test(t, func(t *testing.T) { // buckets don't drain meanwhile
			s := memstore.New(memstore.Config{})
			c := middleware.Config{Store: s, Ban: threeStrikes(t)}
			policies, want := []*algorithms.Policy{free, c.Ban}, []int64{10, 3}
			for _, r := range rules {
				c.Rules = append(c.Rules, r.rule)
				p := r.rule.Policy
				if r.rule.PolicyOf != nil {
					p = r.rule.Policies[len(r.rule.Policies)-1]
				}
				policies, want = append(policies, p), append(want, r.left[i])
			}
			if w := serve(newMiddleware(t, c).Handler(status(code))); w.Code != code {
				t.Errorf("%d, want %d", w.Code, code)
			}
			wantLeft(t, s, policies, want...)
		})
	}
}

// Under every algorithm a refund at once makes the key as new, and one that comes
// when the charge counts no more gives nothing back.
func TestRefundAndTime(t *testing.T) {
	for _, a := range append(everyAlgorithm, struct {
		algorithms.Algorithm
		wait string
	}{Algorithm: algorithms.FixedWindow{Aligned: true}}) {
		t.Run(fmt.Sprintf("%T%v", a.Algorithm, a.Algorithm), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := refunding(t, serverError)
				p := policyOf(t, "timed", a.Algorithm, algorithms.PerMinute(2))
				c.Rules[0].Policy = p
				m := newMiddleware(t, c)
				for range 5 {
					serve(m.Handler(status(503)))
				}
				wantLeft(t, c.Store, []*algorithms.Policy{p}, 2)
				if n := c.Store.(*memstore.Store).Len(); n != 0 {
					t.Errorf("%d keys, want none", n)
				}
				serve(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(time.Hour)
					for range 2 {
						serve(m.Handler(ok))
					}
					w.WriteHeader(503)
				})))
				wantLeft(t, c.Store, []*algorithms.Policy{p}, 0)
			})
		})
	}
}

// Nothing is given back of a request that is refused, or that a rule on trial
// would have refused: nothing was taken.
func TestRefundOfRefused(t *testing.T) {
	for at := range 2 { // the rule that refuses is the first, or the last
		c, p := refunding(t, always)
		full := policyOf(t, "full", algorithms.FixedWindow{}, algorithms.PerHour(1))
		c.Rules = slices.Insert(c.Rules, at, middleware.Rule{Policy: full, Key: keyfunc.Const("k"), Refund: always})
		var m *middleware.Middleware
		c.Denied = func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
			if err := m.Refund(r.Context(), d); err != nil {
				t.Error(err)
			}
			middleware.DefaultDenied(w, r, d)
		}
		c.Ban = threeStrikes(t)
		m = newMiddleware(t, c)
		for _, p := range []*algorithms.Policy{p, full} {
			if _, err := store.Take(t.Context(), c.Store, p, "k", 1); err != nil {
				t.Fatal(err)
			}
		}
		refused, passes := m.Allow(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if passes {
			t.Fatal("it passes")
		}
		m.Settle(refused, 429)
		wantLeft(t, c.Store, []*algorithms.Policy{p, full, c.Ban}, 9, 0, 2)

		c.Rules[at].Shadow = true
		if w := serve(newMiddleware(t, c).Handler(ok)); w.Code != 200 {
			t.Error(w.Code)
		}
		wantLeft(t, c.Store, []*algorithms.Policy{p, full, c.Ban}, 9, 0, 2)
	}
}

// A store that lets pass what it could not decide has taken nothing, and neither
// has a look.
func TestRefundOfUndecided(t *testing.T) {
	for cost, s := range []*seen{{Store: memstore.New(memstore.Config{})}, {Store: answering{}}} {
		c, _ := refunding(t, always)
		c.Store = s
		c.Rules[0].Cost = func(*http.Request) int64 { return int64(cost) }
		m := newMiddleware(t, c)
		serve(m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			d, _ := middleware.FromContext(r.Context())
			if err := m.Refund(r.Context(), d); err != nil {
				t.Error(err)
			}
		})))
		if len(s.charges) != 1 {
			t.Errorf("the store was asked for %+v", s.charges)
		}
	}
}

// A handler that does not return counts as 500, and what it does goes on.
func TestRefundAfterPanic(t *testing.T) {
	for name, end := range map[string]func(){
		"value":     func() { panic("on purpose") },
		"error":     func() { panic(errAway) },
		"aborted":   func() { panic(http.ErrAbortHandler) },
		"goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var codes []int
			c, p := refunding(t, func(code int) bool {
				codes = append(codes, code)
				return serverError(code)
			})
			h := newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(200)
				end()
			}))
			run := func(f func()) (value any, returned bool) {
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { value = recover() }()
					f()
					returned = true
				})
				wg.Wait()
				return value, returned
			}
			want, _ := run(end)
			if got, returned := run(func() { serve(h) }); got != want || returned {
				t.Errorf("it ends with %v (%v), want %v", got, returned, want)
			}
			if !slices.Equal(codes, []int{500}) {
				t.Errorf("Refund was asked for %d", codes)
			}
			wantLeft(t, c.Store, []*algorithms.Policy{p}, 10)
		})
	}
}

// A Refund that panics leaves nothing locked.
func TestRefundThatPanics(t *testing.T) {
	var d middleware.Decision
	c, p := refunding(t, func(int) bool { panic("on purpose") })
	m := newMiddleware(t, c)
	func() {
		defer func() { _ = recover() }()
		serve(m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { d, _ = middleware.FromContext(r.Context()) })))
		t.Error("it was swallowed")
	}()
	if err := m.Refund(t.Context(), d); err != nil {
		t.Error(err)
	}
	wantLeft(t, c.Store, []*algorithms.Policy{p}, 10)
}
