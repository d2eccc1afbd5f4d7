package casetest

import (
	"context"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

func raisedAfterHammering(w *world) {
	before, after := w.policy(algorithms.PerHour(10)), w.policy(algorithms.PerHour(20))
	w.want("of 50", w.passed(before, 50), 10)
	w.at(60)
	more := 10
	if _, ban := w.algorithm.(AnyBan); ban {
		more = 0 // one that has begun ends as it was meant to
	}
	w.want("of 11 after the raise", w.passed(after, 11), more)
}

func refusedCostLeavesRest(w *world) {
	w.each(w.policy(algorithms.PerMinute(10)), []int64{8, 5, 1, 1, 1}, []bool{true, false, true, true, false}, []int64{2, 2, 1, 0, 0})
}

func exactlyTheLimit(w *world) {
	for _, n := range []int64{1, 2, 10} {
		p := w.named("n"+string(rune('a'+n)), algorithms.PerMinute(n))
		for i := range n + 2 {
			w.each(p, []int64{1}, []bool{i < n}, nil)
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

func remainingSequence(w *world) {
	p := w.policy(algorithms.PerMinute(10))
	for i := range int64(11) {
		w.each(p, []int64{1}, []bool{i < 10}, []int64{max(0, 9-i)})
	}
}

func secondAndMinute(w *world) {
	group := []store.Charge{
		{Policy: w.named("second", algorithms.PerSecond(1)), Key: "k", Cost: 1},
		{Policy: w.named("minute", algorithms.PerMinute(30)), Key: "k", Cost: 1},
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
		w.at(float64(i))
		if i == 3 {
			buffer[len(buffer)-1] = '2'
		}
		r := take(w.T, w.store, p, string(buffer), 1)
		w.want("limited", r.Limited, !passes)
	}
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

func contextDone(w *world) {
	p := w.policy(algorithms.PerMinute(3))
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10 {
		if _, err := store.Take(done, w.store, p, "k", 1); err != context.Canceled {
			w.Errorf("a cancelled call: %v", err)
		}
	}
	w.each(p, []int64{1, 1, 1, 1}, []bool{true, true, true, false}, nil)
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

// A window of the same numbers lets no more than those through; a bucket goes on
// at its rate.
func bucketInAMinute(w *world) {
	p := w.policy(per(3, 60*second, 0))
	_, refills := w.algorithm.(algorithms.Queue)
	for t := range 60 {
		w.at(float64(t))
		passes := t < 3 || refills && (t == 20 || t == 40)
		w.want("passed", w.passed(p, 1) == 1, passes)
	}
}
