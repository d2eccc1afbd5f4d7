package middleware_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// distant is a store that a request takes some time to get to, and an answer to
// come back from.
type distant struct {
	store.Store
	to, back func() time.Duration
}

func (d distant) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	time.Sleep(d.to())
	defer func() { time.Sleep(d.back()) }()
	return d.Store.Take(ctx, charges, results)
}

// resets serves requests at odd times within a window of a minute that the first of
// them, some time after a whole second, opens or not; the store's clock is some time
// ahead. It counts the resets told, less that of the window by this clock.
func resets(t *testing.T, a algorithms.Algorithm, as middleware.ResetFormat, first, to, ahead time.Duration) map[int64]int {
	t.Helper()
	all := map[int64]int{}
	random := rand.New(rand.NewPCG(uint64(first), uint64(to)))
	upTo := func() time.Duration { return time.Duration(random.Int64N(int64(to))) + 1 }
	start := time.Now().Truncate(time.Minute).Add(time.Minute) // of a window by the clock
	p := policyOf(t, "p", a, algorithms.PerMinute(30))
	h := newMiddleware(t, middleware.Config{
		Store: distant{memstore.New(memstore.Config{Clock: func() time.Time { return time.Now().Add(ahead) }}), upTo, upTo},
		Rules: []middleware.Rule{{Policy: p, Key: keyfunc.Const("k")}}, Headers: middleware.Headers{ResetAs: as},
	}).Handler(ok)
	time.Sleep(time.Until(start) + first)
	for range 40 { // the last are refused
		s := serve(h).Header().Get("X-RateLimit-Reset")
		reset, err := strconv.ParseInt(s, 10, 64)
		if as == middleware.RFC3339 {
			at, timeErr := time.Parse(time.RFC3339, s)
			reset, err = at.Unix(), timeErr
		}
		if err != nil {
			t.Fatal(err)
		}
		all[reset-start.Unix()-60]++
		time.Sleep(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
	}
	return all
}

// A reset by the time of day is the same in each answer where the window ends with
// a whole second and the store is nearer than one; of another window it is the next
// whole second or that after it.
func TestResetDoesNotWobble(t *testing.T) {
	const ms = time.Millisecond
	aligned := algorithms.FixedWindow{Aligned: true}
	for _, c := range []struct {
		a                algorithms.Algorithm
		first, to, ahead time.Duration
		want             []int64
	}{
		{aligned, 0, ms, 0, []int64{0}},
		{aligned, 321987 * time.Microsecond, 300 * ms, 0, []int64{0}},
		{aligned, 999 * ms, 999 * ms, 0, []int64{0}},
		{aligned, 40 * ms, ms, -ms / 2, []int64{0}},
		{aligned, 40 * ms, ms, -9 * ms, []int64{0}},
		{aligned, 1040 * ms, 5 * ms, -900 * ms, []int64{1}}, // late by what the clock is
		{aligned, 40 * ms, 5 * ms, 900 * ms, []int64{0}},
		{algorithms.FixedWindow{}, 500 * ms, 300 * ms, 0, []int64{1}},
		{algorithms.FixedWindow{}, 40 * ms, 20 * ms, 0, []int64{1}},
		{algorithms.FixedWindow{}, 40 * ms, 300 * ms, 0, []int64{0, 1}},
	} {
		for _, as := range []middleware.ResetFormat{middleware.UnixSeconds, middleware.RFC3339} {
			synctest.Test(t, func(t *testing.T) {
				got := resets(t, c.a, as, c.first, c.to, c.ahead)
				for _, want := range c.want {
					if got[want] == 0 {
						t.Errorf("%+v: nothing at %d in %v", c, want, got)
					}
				}
				if len(got) != len(c.want) {
					t.Errorf("%+v: %v", c, got)
				}
			})
		}
	}
}

// The time at which a queue is empty is the same whether a request was held or not,
// and whoever tells of it.
func TestResetOfHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := paced(t, algorithms.LeakyBucket{}, per(1, 10*second, 4))
		c.Rules[0].Cost, c.Headers.ResetAs = nil, middleware.UnixSeconds
		outer := c
		outer.Store, outer.Rules = memstore.New(memstore.Config{}), []middleware.Rule{with(t, "outer", algorithms.FixedWindow{}, per(3, time.Minute, 0))}
		h := newMiddleware(t, outer).Handler(newMiddleware(t, c).Handler(ok))
		for i, want := range []struct {
			limit string
			reset time.Duration
		}{{"3", 60 * second}, {"3", 60 * second}, {"3", 60 * second}, {"3", 60 * second}} {
			w := serve(h)
			wantHeaders(t, w, map[string]string{"X-RateLimit-Limit": want.limit, "X-RateLimit-Reset": strconv.FormatInt(start.Add(want.reset).Unix(), 10)})
			if held := time.Since(start); held != time.Duration(min(i, 2))*10*second {
				t.Errorf("request %d was answered after %v", i, held)
			}
		}
		alone := newMiddleware(t, c).Handler(ok)
		wantHeaders(t, serve(alone), map[string]string{"X-RateLimit-Limit": "4", "X-RateLimit-Reset": strconv.FormatInt(start.Add(40*second).Unix(), 10)})
	})
}
