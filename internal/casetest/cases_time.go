package casetest

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

func longIdle(w *world) {
	p := w.policy(algorithms.PerSecond(1_000_000))
	for _, t := range []float64{0, 43_200, 34_603_200, 3_188_203_200} {
		w.at(t)
		w.each(p, []int64{1}, []bool{true}, []int64{999_999})
	}
}

// Steps of nanoseconds are rounded up to the whole microsecond that the clock
// counts.
func exactRefillInstant(w *world) {
	for i, c := range []struct {
		limit  algorithms.Limit
		stepNS int64
	}{
		{per(10, 13*second, 1), 1_300_000_000},
		{per(1, hour, 1), 3_600_000_000_000},
		{per(7, second, 1), 142_857_143},
		{per(3, second, 1), 333_333_334},
	} {
		name := string(rune('a' + i))
		p, early := gcra(w.T, name, c.limit), gcra(w.T, name+"-early", c.limit)
		step := time.Duration((c.stepNS + 999) / 1000 * 1000)
		for range 1000 {
			w.want("limited", w.take(p, 1).Limited, false)
			w.clock.Advance(step)
		}
		w.take(early, 1)
		w.clock.Advance(step - time.Millisecond)
		w.want("1 ms early limited", w.take(early, 1).Limited, true)
	}
}

func clockSetBack(w *world) {
	p := w.policy(algorithms.PerSecond(1).WithBurst(5))
	w.at(100)
	w.want("at 100", w.passed(p, 6), 5)
	w.at(40)
	if r := w.take(p, 1); r.RetryAfter > 5*second {
		w.Errorf("at 40: %+v", r)
	}
	w.at(46)
	w.want("at 46", w.passed(p, 1), 1)
}

func clockJumpsAhead(w *world) {
	p := w.policy(algorithms.PerSecond(1).WithBurst(5))
	w.want("at 0", w.passed(p, 6), 5)
	w.at(3600)
	w.want("at 3600", w.passed(p, 6), 5)
	w.at(1)
	w.take(p, 1)
	w.at(7)
	if r := w.take(p, 1); r.Limited && r.RetryAfter > 5*second {
		w.Errorf("at 7: %+v", r)
	}
}

func promiseOfRetryAfter(w *world) {
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
	runs := 10_000
	if testing.Short() {
		runs = 500
	}
	for run := range runs {
		limit := per(1+rnd.Int64N(50), time.Duration(1000+rnd.Int64N(86_400_000_000))*time.Microsecond, 0)
		p, cost, key := w.policy(limit), 1+rnd.Int64N(limit.Count), strconv.Itoa(run)
		now := w.clock.Now() // what ran before has mostly run out
		at := func(t time.Time) algorithms.Result {
			w.clock.Set(t)
			return take(w.T, w.store, p, key, cost)
		}
		r := at(now)
		for !r.Limited {
			now = now.Add((time.Duration(rnd.Int64N(int64(limit.Period))) / time.Duration(4*limit.Count)).Truncate(time.Microsecond))
			r = at(now)
		}
		if r.RetryAfter > 10*time.Millisecond {
			if early := at(now.Add(r.RetryAfter - 2*time.Millisecond)); !early.Limited {
				w.Fatalf("%v, cost %d: %+v, but it passes 2 ms early", limit, cost, r)
			}
		}
		whole := (r.RetryAfter + second - 1).Truncate(second)
		if late := at(now.Add(whole)); late.Limited {
			w.Fatalf("%v, cost %d: %+v, but %v later %+v", limit, cost, r, whole, late)
		}
	}
}
