package casetest

import (
	"math"
	"math/rand/v2"
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
		p, early := w.named(name, c.limit), w.named(name+"-early", c.limit)
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

// fiveInFive is a bucket of five with one a second, or five in a window of five
// seconds.
var fiveInFive = per(5, 5*second, 0)

func clockSetBack(w *world) {
	p := w.policy(fiveInFive)
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
	p := w.policy(fiveInFive)
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

// offset is what the time of a calendar is ahead of UTC.
func (w *world) offset() time.Duration {
	f, _ := w.algorithm.(algorithms.FixedWindow)
	return f.Offset
}

// The times are those of the calendar's own zone.
func oneNotionOfADay(w *world) {
	p := w.policy(algorithms.PerDay(3))
	zone := time.FixedZone("", int(w.offset()/second))
	passed := func(day, hour, minute, calls int) int {
		w.clock.Set(time.Date(2026, time.March, day, hour, minute, 0, 0, zone))
		return w.passed(p, calls)
	}
	got := [4]int{passed(1, 22, 0, 4), passed(2, 0, 10, 4), passed(2, 12, 0, 1), passed(2, 23, 0, 1)}
	want := [4]int{3, 0, 0, 1} // 24 hours
	if w.aligned() {
		want = [4]int{3, 3, 0, 0}
	}
	w.want("passed", got, want)
}

// Days by a zone with daylight saving are not offered: a day is 24 hours, or one by
// the clock that is a fixed offset ahead of UTC. Who takes for Paris its offset in
// summer, or the one in winter, gets that zone's midnight.
func dayOf25Hours(w *world) {
	p := w.policy(algorithms.PerDay(1))
	at := time.Date(2025, time.October, 25, 22, 30, 0, 0, time.UTC)
	w.clock.Set(at)
	w.want("at 22:30", w.passed(p, 1), 1)
	w.clock.Set(at.Add(500 * time.Millisecond))
	r := w.take(p, 1)
	got, want := seconds(r.RetryAfter), int64(86_400)
	if w.aligned() {
		want = map[time.Duration]int64{0: 5400, hour: 1800, 2 * hour: 84_600, 8 * hour: 63_000}[w.offset()]
	}
	if !r.Limited || got <= 0 || got > 90_000 {
		w.Errorf("half a second later: %+v", r)
	}
	w.want("seconds to wait", got, want)
	// What was told is true, across the change of the clocks, too.
	end := at.Add(time.Duration(want) * second)
	w.clock.Set(end.Add(-time.Microsecond))
	w.want("just before", w.passed(p, 1), 0)
	w.clock.Set(end)
	w.want("then", w.passed(p, 2), 1)
}

// Each run is under an algorithm of its own. Windows are short as often as long.
func promiseOfRetryAfter(w *world) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	runs, all := 10_000, Algorithms()
	if testing.Short() {
		runs = 500
	}
	now := w.clock.Now()
	for range runs {
		w.algorithm = all[rnd.IntN(len(all))]
		window := time.Duration(math.Exp(rnd.Float64()*math.Log(86_400_000))*1000) * time.Microsecond // 1 ms to 1 day
		limit := per(1+rnd.Int64N(50), window, 0)
		p, cost := w.policy(limit), int64(0)
		at := func(t time.Time) algorithms.Result {
			w.clock.Set(t)
			return w.take(p, cost)
		}
		var r algorithms.Result
		for !r.Limited {
			now = now.Add(time.Duration(rnd.Int64N(1+window.Microseconds()/(4*limit.Count))) * time.Microsecond)
			cost = 1 + rnd.Int64N(limit.Count)
			r = at(now)
		}
		if r.RetryAfter > 10*time.Millisecond {
			if early := at(now.Add(r.RetryAfter - 2*time.Millisecond)); !early.Limited {
				w.Fatalf("seed %d: %s, %v, cost %d: %+v, but it passes 2 ms early", seed, Form(w.algorithm), limit, cost, r)
			}
		}
		whole := time.Duration(seconds(r.RetryAfter)) * second
		late := at(now.Add(whole))
		if late.Limited {
			w.Fatalf("seed %d: %s, %v, cost %d: %+v, but %v later %+v", seed, Form(w.algorithm), limit, cost, r, whole, late)
		}
		// The next run finds the key as good as new, at any time in a window.
		now = now.Add(whole + late.ResetAfter + time.Duration(rnd.Int64N(window.Microseconds()))*time.Microsecond)
	}
}
