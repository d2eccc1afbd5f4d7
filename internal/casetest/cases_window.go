package casetest

import (
	"time"

	"github.com/weirgo/weir/algorithms"
)

// aligned tells whether windows are those of the clock.
func (w *world) aligned() bool {
	f, _ := w.algorithm.(algorithms.FixedWindow)
	return f.Aligned
}

func windowsClose(w *world) {
	p := w.policy(per(3, 60*second, 0))
	for i, at := range []float64{0, 59, 118, 177, 236, 295, 354, 413} {
		w.at(at)
		r := w.take(p, 1)
		w.want("limited", r.Limited, false)
		if !w.aligned() {
			w.want("remaining", r.Remaining, int64(2-i%2))
		}
	}
}

func boundaryBurst(w *world) {
	p := w.policy(per(60, 60*second, 0))
	got := [3]int{w.passed(p, 1)}
	for i := range 59 {
		w.after(59*second + (time.Duration(i) * second / 60).Truncate(time.Microsecond))
		got[1] += w.passed(p, 1)
	}
	w.at(60)
	got[2] = w.passed(p, 61)
	want := map[string][3]int{
		"fixed-window":    {1, 59, 60},
		"sliding-log":     {1, 59, 1},
		"sliding-counter": {1, 59, 0}, // the estimate is 60 × (1 − 0/60)
	}
	w.want("passed", got, want[w.algorithm.Name()])
}

func windowEndsOnTime(w *world) {
	p := w.policy(per(5, 60*second, 0))
	w.want("at 0", w.passed(p, 1), 1)
	w.at(58.7)
	w.want("at 58.7", w.passed(p, 4), 4)
	for at, left := range []int64{4, 3} {
		w.at(60.1 + float64(at)/10)
		w.each(p, []int64{1}, []bool{true}, []int64{left})
	}
}

func overloadedWindows(w *world) {
	p := w.policy(per(100, second, 0))
	passed, last, longest := 0, time.Duration(0), time.Duration(0)
	for i := range 30 * 150 {
		at := (time.Duration(i) * second / 150).Truncate(time.Microsecond)
		w.after(at)
		longest = max(longest, at-last)
		if !w.take(p, 1).Limited {
			passed, last = passed+1, at
		}
	}
	if passed < 2940 || passed > 3060 {
		w.Errorf("%d passed, want 3000 within 2 %%", passed)
	}
	if longest >= 1050*time.Millisecond {
		w.Errorf("nothing passed for %v", longest)
	}
}

func sameInstant(w *world) {
	p := w.policy(per(5, second, 0))
	for i := range 10 {
		w.each(p, []int64{1}, []bool{i < 5}, nil)
	}
}

func roomJustFreed(w *world) {
	p := w.policy(per(3, 10*second, 0))
	w.passes(p, []float64{0, 1, 2, 10.001}, []bool{true, true, true, true})
	w.at(10.002)
	r := w.take(p, 1)
	w.want("limited at 10.002", r.Limited, true)
	w.want("seconds to wait", seconds(r.RetryAfter), int64(1))
}

func refusalsAreNotLogged(w *world) {
	p := w.policy(algorithms.PerHour(10))
	w.want("passed", w.passed(p, 2000), 10)
	// All the calls, and what is kept after each: a store adds nothing to that.
	var kept algorithms.State
	for range 100_000 {
		if kept, _ = p.Decide(nil, kept, w.start.UnixMicro(), 1, 0); len(kept) > 10 {
			w.Fatalf("%d times are kept", len(kept))
		}
	}
	w.want("kept at the end", len(kept), 10)
}

func waitForTheOldest(w *world) {
	p := w.policy(per(3, 60*second, 0))
	w.passes(p, []float64{0, 20, 40}, []bool{true, true, true})
	w.at(45)
	for i, wait := range []time.Duration{15 * second, 35 * second} {
		r := w.take(p, int64(1+i))
		w.want("limited", r.Limited, true)
		w.want("RetryAfter", r.RetryAfter, wait)
	}
}

func previousWindowCounts(w *world) {
	p := w.policy(per(100, 60*second, 0))
	passed := 0
	for i := range 50 {
		w.at(float64(i))
		passed += w.passed(p, 1)
	}
	for i := range 10 {
		w.at(60 + float64(i)/10)
		passed += w.passed(p, 1)
	}
	w.want("passed before", passed, 60)
	w.at(66)
	w.each(p, []int64{1}, []bool{true}, []int64{44})
	w.want("of 45", w.passed(p, 45), 44)
}

func limitOfOne(w *world) {
	p := w.policy(per(1, 10*second, 0))
	w.want("at 0", w.passed(p, 1), 1)
	w.at(1)
	r := w.take(p, 1)
	if s := seconds(r.RetryAfter); !r.Limited || s < 9 || s > 19 {
		w.Errorf("at 1: %+v; want a wait of 9 to 19 s", r)
	}
	w.at(20)
	w.want("at 20", w.passed(p, 1), 1)
}

func shareIsNotCut(w *world) {
	p := w.policy(per(1, second, 0))
	w.passes(p, []float64{0.9, 1.1, 2}, []bool{true, false, true})
}

func idleGap(w *world) {
	p := w.policy(per(5, second, 0))
	w.want("at 0", w.passed(p, 5), 5)
	w.at(3.5)
	w.each(p, []int64{1, 1, 1, 1, 1, 1}, []bool{true, true, true, true, true, false}, []int64{4, 3, 2, 1, 0, 0})
}

func rollOverAfterAPause(w *world) {
	p := w.policy(per(2, 10*second, 0))
	w.passes(p, []float64{0, 0, 0, 35, 35, 35}, []bool{true, true, false, true, true, false})
}
