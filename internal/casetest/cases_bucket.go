package casetest

import (
	"time"

	"github.com/weirgo/weir/algorithms"
)

func fractionsAreKept(w *world) {
	p := w.policy(per(1, 10*second, 10))
	w.want("of 10", w.passed(p, 10), 10)
	for _, t := range []float64{25, 29} {
		w.at(t)
		w.each(p, []int64{5}, []bool{false}, []int64{2})
	}
	w.at(30)
	w.want("of 4 at 30", w.passed(p, 4), 3)
}

func refillWithinASecond(w *world) {
	p := w.policy(per(10, second, 10))
	w.want("of 10", w.passed(p, 10), 10)
	for _, t := range []float64{0.5, 1} {
		w.at(t)
		w.want("of 6", w.passed(p, 6), 5)
	}
}

func oneAndAHalfASecond(w *world) {
	p := w.policy(per(3, 2*second, 100))
	w.each(p, []int64{100}, []bool{true}, []int64{0})
	for t := 1; t <= 60; t++ {
		w.at(float64(t))
		w.each(p, []int64{1}, []bool{true}, []int64{int64(t) / 2})
	}
}

func hugeCostIsNoDebt(w *world) {
	p := w.policy(per(1, 10*second, 10))
	for i, cost := range []int64{8, 5, 1_000_000, 2} {
		r := w.take(p, cost)
		w.want("limited", r.Limited, i == 1 || i == 2)
		w.want("never", r.RetryAfter == algorithms.Never, i == 2)
		if r.ResetAfter > 110*second {
			w.Errorf("cost %d: %+v; want a life of 110 s at most", cost, r)
		}
	}
	w.at(10)
	w.each(p, []int64{1}, []bool{true}, []int64{0})
}

func partOfAUnitIsNoRoom(w *world) {
	p := w.policy(per(1, second, 5))
	w.want("of 5", w.passed(p, 5), 5)
	w.at(0.5)
	r := w.take(p, 1)
	w.want("limited at 0.5", r.Limited, true)
	w.want("seconds to wait", seconds(r.RetryAfter), int64(1))
	w.at(1)
	w.want("at 1", w.passed(p, 1), 1)
}

func refusalsFillNothing(w *world) {
	p := w.policy(per(1, second, 5))
	w.want("of 1000", w.passed(p, 1000), 5)
	w.passes(p, []float64{1, 1}, []bool{true, false})
}

func idleIsNotCredited(w *world) {
	p := w.policy(per(1, second, 5))
	w.want("at 0", w.passed(p, 1), 1)
	w.at(3600)
	w.want("at 3600", w.passed(p, 100), 5)
}

func noSlotBeforeTheWait(w *world) {
	p := w.policy(per(6, 60*second, 6))
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

func pollingMovesNothing(w *world) {
	p := w.policy(per(1, 10*second, 1))
	passed := 0
	for i := range 300 {
		at := time.Duration(i) * 200 * time.Millisecond
		w.after(at)
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
	p := w.policy(per(2000, second, 1))
	w.passes(p, []float64{0, 0.00025, 0.0005}, []bool{true, false, true})
}

func hundredMicroseconds(w *world) {
	w.start = time.Unix(1_760_000_000, 0)
	w.at(0)
	p := w.policy(per(10_000, second, 1))
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
	p := w.policy(per(1, second, 10))
	w.want("of 9", w.passed(p, 9), 9)
	r := w.take(p, 1)
	w.want("the tenth", r, algorithms.Result{Limit: 10, RetryAfter: second, ResetAfter: 10 * second})
	r = w.take(p, 1)
	w.want("the eleventh", r, algorithms.Result{Limited: true, Limit: 10, RetryAfter: second, ResetAfter: 10 * second})
}

func refundAboveCapacity(w *world) {
	p := w.policy(per(1, 60*second, 10))
	w.each(p, []int64{1, -5, 0, 10, 1}, []bool{true, true, true, true, false}, []int64{9, 10, 10, 0, 0})
}

func refundsStopAtFull(w *world) {
	p := w.policy(per(5, 60*second, 5))
	w.each(p, []int64{1, -1, -1, 5, 1}, []bool{true, true, true, true, false}, []int64{4, 5, 5, 0, 0})
}

// A bucket that never pauses is full again after each tenth of a second; one that
// fills each second, and a window, lose at most what the case has used.
func highRate(w *world) {
	p := w.policy(algorithms.PerSecond(65_535))
	queue, refills := w.algorithm.(algorithms.Queue)
	if refills {
		_, refills = queue.Turn(p.Params(), 1, algorithms.Result{})
	}
	for i := range 20 {
		w.at(float64(i) / 10)
		r := w.take(p, 1)
		if r.Limited || r.Remaining < 65_515 || refills && r.Remaining != 65_534 {
			w.Errorf("call %d: %+v", i+1, r)
		}
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
	p := w.policy(per(20, second, 60))
	passed := 0
	for i := range 2000 {
		w.after(time.Duration(i) * 50 * time.Millisecond)
		passed += w.passed(p, 1)
	}
	w.want("passed", passed, 2000)
}

func upperBound(w *world) {
	p, q := w.policy(per(100, second, 10)), w.named("q", per(10, 60*second, 10))
	passed := 0
	for ms := range 1001 {
		w.after(time.Duration(ms) * time.Millisecond)
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
