package casetest

import (
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

const (
	second = time.Second
	hour   = time.Hour
)

func per(count int64, period time.Duration, burst int64) algorithms.Limit {
	return algorithms.Limit{Count: count, Period: period, Burst: burst}
}

func raisedAfterHammering(w *world) {
	before, after := w.policy(algorithms.PerHour(10)), w.policy(algorithms.PerHour(20))
	w.want("of 50", w.passed(before, 50), 10)
	w.at(60)
	w.want("of 11 after the raise", w.passed(after, 11), 10)
}

func refusedCostLeavesRest(w *world) {
	w.each(w.policy(algorithms.PerMinute(10)), []int64{8, 5, 1, 1, 1}, []bool{true, false, true, true, false}, []int64{2, 2, 1, 0, 0})
}

func exactlyTheLimit(w *world) {
	for _, n := range []int64{1, 2, 10} {
		p := gcra(w.T, "n"+string(rune('a'+n)), algorithms.PerMinute(n))
		w.want("passed", w.passed(p, int(n)+2), int(n))
	}
}

func noSlotBeforeTheWait(w *world) {
	p := w.policy(algorithms.PerMinute(6))
	w.want("of 6", w.passed(p, 6), 6)
	for t := 1; t <= 60; t++ {
		w.at(float64(t))
		r := w.take(p, 1)
		if r.Limited == (t%10 == 0) {
			w.Errorf("at %d: %+v", t, r)
		}
		if t == 1 {
			w.want("RetryAfter at 1", r.RetryAfter, 9*second)
		}
	}
}

func costAboveCapacity(w *world) {
	p := w.policy(per(5, 50*second, 0))
	r := w.take(p, 6)
	w.want("limited", r.Limited, true)
	w.want("RetryAfter", r.RetryAfter, algorithms.Never)
	w.each(p, []int64{1}, []bool{true}, []int64{4})
}

func pollingMovesNothing(w *world) {
	p := w.policy(per(1, 10*second, 1))
	passed := 0
	for i := range 300 {
		at := time.Duration(i) * 200 * time.Millisecond
		w.clock.Set(w.start.Add(at))
		r := w.take(p, 1)
		if r.Limited == (at%(10*second) == 0) {
			w.Errorf("at %v: %+v", at, r)
		}
		if !r.Limited {
			passed++
		} else {
			w.want("RetryAfter", r.RetryAfter, 10*second-at%(10*second))
		}
	}
	w.want("passed", passed, 6)
}

func aboveAThousandASecond(w *world) {
	p := w.policy(algorithms.PerSecond(2000).WithBurst(1))
	for i, passes := range []bool{true, false, true} {
		w.clock.Set(w.start.Add(time.Duration(i) * 250 * time.Microsecond))
		w.each(p, []int64{1}, []bool{passes}, nil)
	}
}

func hundredMicroseconds(w *world) {
	w.start = time.Unix(1_760_000_000, 0)
	w.at(0)
	p := w.policy(algorithms.PerSecond(10_000).WithBurst(1))
	passed := func(step time.Duration) (n int) {
		for i := range 1000 {
			w.clock.Advance(step)
			limited := w.take(p, 1).Limited
			if !limited {
				n++
			}
			if i == 1 {
				w.want("the second call limited", limited, step < 100*time.Microsecond)
			}
		}
		return n
	}
	w.want("passed at 101 µs", passed(101*time.Microsecond), 1000)
	w.clock.Advance(second)
	w.want("passed at 99 µs", passed(99*time.Microsecond), 500)
}

func raisedHundredfold(w *world) {
	before, after := w.policy(per(10, 20*second, 16)), w.policy(per(1000, 20*second, 16))
	w.want("before", w.passed(before, 2), 2)
	w.want("after", w.passed(after, 1), 1)
}

func resetIsNeverNegative(w *world) {
	p := w.policy(per(30, 60*second, 16))
	w.want("first", w.take(p, 1).Cell(), [5]int64{0, 16, 15, -1, 2})
	w.at(3600)
	r := w.take(p, 17)
	w.want("second", r.Cell(), [5]int64{1, 16, 16, -1, 0})
}

func waitAfterTheLast(w *world) {
	p := w.policy(algorithms.PerSecond(1).WithBurst(10))
	w.want("of 9", w.passed(p, 9), 9)
	r := w.take(p, 1)
	w.want("the tenth", r, algorithms.Result{Limit: 10, RetryAfter: second, ResetAfter: 10 * second})
	r = w.take(p, 1)
	w.want("the eleventh", r, algorithms.Result{Limited: true, Limit: 10, RetryAfter: second, ResetAfter: 10 * second})
}

func remainingSequence(w *world) {
	p := w.policy(algorithms.PerMinute(10))
	for i := range int64(11) {
		w.each(p, []int64{1}, []bool{i < 10}, []int64{max(0, 9-i)})
	}
}

func secondAndMinute(w *world) {
	group := []store.Charge{
		{Policy: gcra(w.T, "second", algorithms.PerSecond(1)), Key: "k", Cost: 1},
		{Policy: gcra(w.T, "minute", algorithms.PerMinute(30)), Key: "k", Cost: 1},
	}
	for i, passes := range []bool{true, false, true} {
		w.at(float64(i) / 2)
		results := make([]algorithms.Result, 2)
		if err := w.store.Take(w.Context(), group, results); err != nil {
			w.Fatal(err)
		}
		w.want("second limited", results[0].Limited, !passes)
		w.want("minute limited", results[1].Limited, false)
	}
}

func nearlyEqualKeys(w *world) {
	p := w.policy(algorithms.PerMinute(2))
	buffer := []byte("192.0.2.1")
	for i, passes := range []bool{true, true, false, true, true} {
		if i == 3 {
			buffer[len(buffer)-1] = '2'
		}
		r := take(w.T, w.store, p, string(buffer), 1)
		w.want("limited", r.Limited, !passes)
	}
}

func idleIsNotCredited(w *world) {
	p := w.policy(algorithms.PerSecond(1).WithBurst(5))
	w.want("at 0", w.passed(p, 1), 1)
	w.at(3600)
	w.want("at 3600", w.passed(p, 100), 5)
}

func refundAboveCapacity(w *world) {
	p := w.policy(per(1, 60*second, 10))
	w.each(p, []int64{1, -5, 0, 10, 1}, []bool{true, true, true, true, false}, []int64{9, 10, 10, 0, 0})
}

func refundsStopAtFull(w *world) {
	p := w.policy(per(5, 60*second, 5))
	w.each(p, []int64{1, -1, -1, 5, 1}, []bool{true, true, true, true, false}, []int64{4, 5, 5, 0, 0})
}

func limitTightened(w *world) {
	before, after := w.policy(algorithms.PerMinute(10)), w.policy(algorithms.PerDay(2))
	w.want("before", w.passed(before, 2), 2)
	total := 0
	for _, at := range []float64{1, 700} {
		w.at(at)
		total += w.passed(after, 3)
		w.want("limit", w.take(after, 0).Limit, int64(2))
		w.want("remaining", w.take(after, 0).Remaining, int64(0))
	}
	if total > 2 {
		w.Errorf("%d passed under the tightened limit", total)
	}
}

func highRate(w *world) {
	p := w.policy(algorithms.PerSecond(65_535))
	for i := range 20 {
		w.clock.Set(w.start.Add(time.Duration(i) * 100 * time.Millisecond))
		w.each(p, []int64{1}, []bool{true}, []int64{65_534})
	}
}

func slowDebtIsKept(w *world) {
	p := w.policy(per(1, 1000*second, 100))
	w.want("of 100", w.passed(p, 100), 100)
	w.at(600)
	r := w.take(p, 1)
	w.want("limited at 600", r.Limited, true)
	w.want("RetryAfter at 600", r.RetryAfter, 400*second)
	w.at(1000)
	w.want("at 1000", w.passed(p, 1), 1)
}

func activeClientGetsNoFreshBucket(w *world) {
	p := w.policy(per(1, 60*second, 5))
	passed := 0
	for t := range 3600 {
		w.at(float64(t))
		passed += w.passed(p, 1)
	}
	w.want("passed", passed, 64)
}

func rateBeyondTheBurst(w *world) {
	p := w.policy(algorithms.PerSecond(20).WithBurst(60))
	passed := 0
	for i := range 2000 {
		w.clock.Set(w.start.Add(time.Duration(i) * 50 * time.Millisecond))
		passed += w.passed(p, 1)
	}
	w.want("passed", passed, 2000)
}

func upperBound(w *world) {
	p, q := w.policy(algorithms.PerSecond(100).WithBurst(10)), gcra(w.T, "q", per(10, 60*second, 10))
	passed := 0
	for ms := range 1001 {
		w.clock.Set(w.start.Add(time.Duration(ms) * time.Millisecond))
		passed += w.passed(p, 1)
	}
	w.want("passed in a second", passed, 110)
	passed = 0
	for t := range 60 {
		w.at(float64(100 + t))
		passed += w.passed(q, 1)
	}
	w.want("passed in a minute", passed, 19)
}

func bucketInAMinute(w *world) {
	p := w.policy(per(3, 60*second, 3))
	for t := range 60 {
		w.at(float64(t))
		passes := t < 3 || t == 20 || t == 40
		w.want("passed", w.passed(p, 1) == 1, passes)
	}
}

func looking(w *world) {
	p := w.policy(algorithms.PerMinute(3))
	looks := func(n int, left int64) {
		for range n {
			w.want("remaining at a look", w.take(p, 0).Remaining, left)
		}
	}
	looks(100, 3)
	w.each(p, []int64{1}, []bool{true}, []int64{2})
	looks(100, 2)
	w.each(p, []int64{1, 1}, []bool{true, true}, []int64{1, 0})
	looks(1, 0)
	w.each(p, []int64{1}, []bool{false}, []int64{0})
}
