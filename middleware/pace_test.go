package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// paced is a Config of one rule with Pace, to be used in a bubble.
func paced(t *testing.T, a algorithms.Algorithm, l algorithms.Limit) middleware.Config {
	t.Helper()
	return middleware.Config{
		Store:  memstore.New(memstore.Config{}),
		Logger: slog.New(slog.DiscardHandler),
		Rules: []middleware.Rule{{
			Policy: policyOf(t, "pace", a, l), Key: keyfunc.Const("k"), Pace: true,
			Cost: func(r *http.Request) int64 { return r.ContentLength },
		}},
	}
}

// visit is a request, and what becomes of it.
type visit struct {
	at, gone time.Duration // it comes, and its context is done, if that is not 0
	cost     int64
	code     int
	answered time.Duration
	headers  map[string]string
}

// visits serves them, each in a goroutine of its own, one after the other where
// they come at one time.
func visits(t *testing.T, m func(http.Handler) http.Handler, all []visit) {
	t.Helper()
	start := time.Now()
	var ran atomic.Int64
	h := m(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran.Add(1) }))
	answers := make([]*httptest.ResponseRecorder, len(all))
	answered := make([]time.Duration, len(all))
	passes := int64(0)
	var waiting sync.WaitGroup
	for i, v := range all {
		time.Sleep(v.at - time.Since(start))
		waiting.Go(func() {
			ctx := context.Background()
			if v.gone > 0 {
				timed, cancel := context.WithTimeout(ctx, v.gone-v.at)
				defer cancel()
				ctx = timed
			}
			answers[i] = serve(h, func(r *http.Request) { *r, r.ContentLength = *r.WithContext(ctx), v.cost })
			answered[i] = time.Since(start)
		})
		synctest.Wait()
		if v.code == 200 {
			passes++
		}
	}
	waiting.Wait()
	for i, v := range all {
		if w := answers[i]; w.Code != v.code || answered[i] != v.answered {
			t.Errorf("visit %d: %d at %v, want %d at %v", i, w.Code, answered[i], v.code, v.answered)
		}
		wantHeaders(t, answers[i], v.headers)
	}
	if n := ran.Load(); n != passes {
		t.Errorf("the handler ran %d times, want %d", n, passes)
	}
}

const second = time.Second

func TestPace(t *testing.T) {
	perSecond := algorithms.PerSecond(1).WithBurst(4)
	headers := func(remaining, reset, retry string) map[string]string {
		return map[string]string{"X-RateLimit-Limit": "4", "X-RateLimit-Remaining": remaining, "X-RateLimit-Reset": reset, "Retry-After": retry}
	}
	for name, all := range map[string][]visit{
		"all at once": {
			{cost: 1, code: 200, answered: 0, headers: headers("3", "1", "")},
			{cost: 1, code: 200, answered: 1 * second, headers: headers("2", "1", "")},
			{cost: 1, code: 200, answered: 2 * second, headers: headers("1", "1", "")},
			{cost: 1, code: 200, answered: 3 * second, headers: headers("0", "1", "")},
			{cost: 1, code: 429, answered: 0, headers: headers("0", "4", "1")},
			{at: second / 2, cost: 1, code: 429, answered: second / 2, headers: headers("0", "4", "1")},
			{at: second, cost: 1, code: 200, answered: 4 * second, headers: headers("0", "1", "")},
			{at: 10 * second, cost: 1, code: 200, answered: 10 * second, headers: headers("3", "1", "")},
		},
		"in between": {
			{cost: 1, code: 200, answered: 0},
			{at: second / 4, cost: 1, code: 200, answered: second, headers: headers("2", "1", "")},
			{at: 3 * second, cost: 1, code: 200, answered: 3 * second},
		},
		"by cost": {
			{cost: 3, code: 200, answered: 0, headers: headers("1", "3", "")},
			{cost: 2, code: 429, answered: 0, headers: headers("1", "3", "1")},
			{cost: 1, code: 200, answered: 3 * second, headers: headers("0", "1", "")},
			{cost: 5, code: 429, answered: 0, headers: headers("0", "4", "")},
			{cost: 0, code: 429, answered: 0},
			{at: 2 * second, cost: 2, code: 200, answered: 4 * second, headers: headers("0", "2", "")},
			{at: 3 * second, cost: 0, code: 200, answered: 3 * second}, // looks, and has no turn
		},
		"one leaves": {
			{cost: 1, code: 200, answered: 0},
			{cost: 1, gone: 5 * second / 2, code: 200, answered: second},
			{cost: 1, gone: 3 * second / 2, code: 503, answered: 3 * second / 2, headers: headers("1", "2", "1")},
			{cost: 1, code: 200, answered: 3 * second},
			{at: 7 * second / 4, cost: 1, code: 200, answered: 4 * second},
		},
	} {
		for _, a := range []algorithms.Algorithm{algorithms.LeakyBucket{}, algorithms.TokenBucket{}, algorithms.GCRA{}} {
			t.Run(name+"/"+a.Name(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { visits(t, newMiddleware(t, paced(t, a, perSecond)).Handler, all) })
			})
		}
	}
}

// Of two queues the latest turn counts, wherever it stands; and a rule without
// Pace refuses, at once, and nothing is charged.
func TestPaceWithOthers(t *testing.T) {
	slow, fast := per(1, 2*second, 8), per(1, second, 3)
	for _, limits := range [][2]algorithms.Limit{{slow, fast}, {fast, slow}} {
		synctest.Test(t, func(t *testing.T) {
			c := paced(t, algorithms.LeakyBucket{}, limits[0])
			c.Rules[0].Cost = nil
			c.Rules = append(c.Rules, middleware.Rule{Policy: policyOf(t, "too", algorithms.GCRA{}, limits[1]), Key: keyfunc.Const("k"), Pace: true})
			visits(t, newMiddleware(t, c).Handler, []visit{{code: 200}, {code: 200, answered: 2 * second}, {code: 200, answered: 4 * second}, {code: 429}})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := paced(t, algorithms.LeakyBucket{}, slow)
		c.Rules = append(c.Rules, middleware.Rule{Policy: policyOf(t, "too", algorithms.FixedWindow{}, per(2, 9*second, 0)), Key: keyfunc.Const("k")})
		visits(t, newMiddleware(t, c).Handler, []visit{
			{cost: 1, code: 200}, {cost: 1, code: 200, answered: 2 * second, headers: map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Reset": "7"}},
			{cost: 1, code: 429, headers: map[string]string{"Retry-After": "9"}},
			{at: 9 * second, cost: 1, code: 200, answered: 9 * second},
			{at: 9 * second, cost: 2, code: 200, answered: 11 * second},
			{at: 18 * second, cost: 7, code: 200, answered: 18 * second},
			{at: 18 * second, cost: 1, code: 200, answered: 32 * second, headers: map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Reset": "0"}},
		})
	})
}

// A rule that is left out holds nobody, and neither does one of a request that
// can't pass, or of a store that does not decide.
func TestPaceHoldsNobodyElse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*middleware.Config)
		code   int
	}{
		"left out": {func(c *middleware.Config) { c.Rules[0].Key = leftOut }, 200},
		"no key": {func(c *middleware.Config) {
			c.Rules = append(c.Rules, middleware.Rule{Policy: policy(t, "p", algorithms.PerHour(5)), Key: keyfunc.Header("X-None")})
		}, 400},
		"open store": {func(c *middleware.Config) { c.Store = answering{} }, 200},
		"no store":   {func(c *middleware.Config) { c.Store = failing{} }, 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := paced(t, algorithms.LeakyBucket{}, per(1, second, 9))
				c.change(&config)
				visits(t, newMiddleware(t, config).Handler, []visit{{cost: 1, code: c.code}, {cost: 1, code: c.code}})
			})
		})
	}
}

// Check says how long, and leaves the waiting to its caller; the handler sees it.
func TestPaceDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		m := newMiddleware(t, paced(t, algorithms.LeakyBucket{}, per(1, second, 3)))
		r := httptest.NewRequest("GET", "/", nil)
		r.ContentLength = 1
		for i, want := range []time.Duration{0, second, 2 * second, 0} {
			d, err := m.Check(r)
			if err != nil || d.Delay != want || (d.Refused == 0) != (i == 3) || time.Since(start) != 0 {
				t.Errorf("call %d: %+v, %v after %v", i, d, err, time.Since(start))
			}
		}
		time.Sleep(second)
		m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			d, ok := middleware.FromContext(r.Context())
			if !ok || d.Delay != 2*second || d.Results[0].ResetAfter != 3*second || time.Since(start) != 3*second {
				t.Errorf("in the handler after %v: %+v", time.Since(start), d)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	})
}

// One Middleware holds a request once. Of two, each holds it for its own turn,
// and what the outer one has said of the reset is brought up to date.
func TestPaceNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMiddleware(t, paced(t, algorithms.LeakyBucket{}, per(1, second, 3)))
		visits(t, func(h http.Handler) http.Handler { return m.Handler(m.Handler(h)) }, []visit{{cost: 1, code: 200}, {cost: 1, code: 200, answered: second}})

		outer := newMiddleware(t, paced(t, algorithms.LeakyBucket{}, per(1, 20*second, 2)))
		inner := newMiddleware(t, paced(t, algorithms.GCRA{}, per(1, 30*second, 9)))
		visits(t, func(h http.Handler) http.Handler { return outer.Handler(inner.Handler(h)) }, []visit{
			{cost: 1, code: 200, headers: map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Reset": "20"}},
			{cost: 1, code: 200, answered: 30 * second, headers: map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Reset": "10"}},
		})

		time.Sleep(time.Hour)
		window := counted(t, nil, algorithms.FixedWindow{}, per(1, 10*second, 0))
		visits(t, func(h http.Handler) http.Handler { return outer.Handler(window.Handler(h)) }, []visit{
			{cost: 1, code: 200, headers: map[string]string{"X-RateLimit-Limit": "1", "X-RateLimit-Reset": "10"}},
			{cost: 1, code: 200, answered: 20 * second, headers: map[string]string{"X-RateLimit-Limit": "1", "X-RateLimit-Reset": "10"}},
		})

		time.Sleep(time.Hour) // until the inner queue is empty
		outer = newMiddleware(t, middleware.Config{Store: memstore.New(memstore.Config{}), Rules: []middleware.Rule{{Policy: policy(t, "hour", algorithms.PerHour(2)), Key: keyfunc.Const("k")}}})
		visits(t, func(h http.Handler) http.Handler { return outer.Handler(inner.Handler(h)) }, []visit{
			{cost: 1, code: 200, headers: map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Reset": "1800"}},
			{cost: 1, code: 200, answered: 30 * second, headers: map[string]string{"X-RateLimit-Limit": "2", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3570"}},
		})
	})
}

// seconds is a store that tells times in seconds.
type seconds struct{ store.Store }

func (seconds) Resolution() time.Duration { return time.Second }

// Where times are rounded to seconds, turns can't be told apart.
func TestPaceNeedsExactTimes(t *testing.T) {
	p, err := algorithms.NewPolicy("p", algorithms.LeakyBucket{}, algorithms.PerSecond(10))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []store.Store{seconds{memstore.New(memstore.Config{})}, store.Prefix(seconds{memstore.New(memstore.Config{})}, "p")} {
		_, err = middleware.New(middleware.Config{Store: s, Rules: []middleware.Rule{{Policy: p, Key: keyfunc.Const("k"), Pace: true}}})
		if mistake := (*middleware.FieldError)(nil); !errors.As(err, &mistake) || mistake.Field != "Rules[0].Pace" {
			t.Errorf("%v", err)
		}
	}
}
