package storetest

import (
	"math"
	"math/big"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// checkGiveBack: law 4.
func (tr *trace) checkGiveBack() {
	tr.Helper()
	for range 200 {
		used := 1 + tr.rnd.Int64N(tr.capacity)
		before, r0 := tr.decide(nil, t0, used, 0)
		cost := tr.rnd.Int64N(r0.Remaining + 1)
		taken := before
		if cost > 0 {
			taken, _ = tr.decide(before, t0, cost, 0)
		}
		if _, r := tr.decide(taken, t0, -cost, 0); cost > 0 && r.Remaining != r0.Remaining {
			law(4).broke(tr, "%d left, %d taken and given back at once: %d left", r0.Remaining, cost, r.Remaining)
		}
		for _, all := range []int64{-used - cost, math.MinInt64} {
			if _, r := tr.decide(taken, t0, all, 0); r.Limited || r.Remaining != tr.capacity || r.ResetAfter != 0 {
				law(4).broke(tr, "all given back: %+v", r)
			}
		}
		// The longer ago, the less comes back, and nothing after the reset. A window
		// may have begun before its first charge, but not longer ago than it lasts.
		reset := r0.ResetAfter.Microseconds()
		if tr.Span != nil {
			reset = max(reset, tr.span())
		}
		if reset == longest {
			continue
		}
		left := int64(math.MaxInt64)
		for _, age := range []int64{-5, 0, tr.rnd.Int64N(reset + 1), reset, reset + tr.rnd.Int64N(reset+1), math.MaxInt64} {
			_, r := tr.decide(before, t0, -used, age)
			if age > 0 && r.Remaining > left || r.Remaining < r0.Remaining {
				law(4).broke(tr, "%d given back after %d µs: %d left, and %d before", used, age, r.Remaining, r0.Remaining)
			}
			if age >= reset && r.Remaining != r0.Remaining {
				law(4).broke(tr, "%d given back after %d µs, past the reset: %d left, and %d before", used, age, r.Remaining, r0.Remaining)
			}
			left = r.Remaining
		}
	}
}

func (tr *trace) bound(span int64) *big.Int {
	if tr.Bound != nil {
		return big.NewInt(tr.Bound(tr.limit, time.Duration(span)*time.Microsecond))
	}
	b := mulDiv(tr.limit.Count, span, tr.limit.Period.Microseconds())
	return b.Add(b, big.NewInt(tr.capacity))
}

// checkBound: the first half of law 6. A greedy caller takes what it can, as
// soon as it can, in every span between any two of its charges.
func (tr *trace) checkBound() {
	tr.Helper()
	type taken struct{ at, units int64 }
	var all []taken
	state, now := algorithms.State(nil), int64(t0)
	for len(all) < 250 {
		cost := 1 + tr.rnd.Int64N(tr.capacity)
		if tr.rnd.IntN(2) == 0 {
			cost = 1 + tr.rnd.Int64N(min(3, tr.capacity))
		}
		next, r := tr.decide(state, now, cost, 0)
		if !r.Limited {
			all = append(all, taken{now, cost})
		}
		state = next
		if r.Limited || r.Remaining == 0 {
			now += r.RetryAfter.Microseconds()
			if tr.rnd.IntN(8) == 0 {
				now += tr.rnd.Int64N(1 + r.ResetAfter.Microseconds())
			}
		} else if tr.rnd.IntN(8) == 0 { // what is left is taken at the very end, and then what is new
			now += max(0, r.ResetAfter.Microseconds()-1)
		}
		if now > 1<<52 {
			break
		}
	}
	for i := range all {
		sum := big.NewInt(0)
		for _, c := range all[i:] {
			sum.Add(sum, big.NewInt(c.units))
			if most := tr.bound(c.at - all[i].at); sum.Cmp(most) > 0 {
				law(6).broke(tr, "%v units in %d µs; the bound is %v; seed %d", sum, c.at-all[i].at, most, tr.Seed)
				return
			}
		}
	}
}

// checkRate: the second half of law 6. A caller who asks without pause is let in
// at each RetryAfter; over a time of 10⁹ ticks, its units are those of the rate
// to within one tick.
func (tr *trace) checkRate() {
	tr.Helper()
	units, each := tr.limit.Count, tr.limit.Period.Microseconds()
	tick := int64(1)
	if float64(tr.capacity)*float64(each) > longest {
		tick = 1000_000 // the bucket drains no finer than this
	}
	state, r := tr.decide(nil, t0, tr.capacity, 0)
	now, got := int64(t0), int64(0)
	for steps := 0; steps < 20_000 && now-t0 < 1_000_000_000*tick; steps++ {
		cost := int64(1)
		if tr.capacity > 2 && steps%2 == 1 {
			cost = 1 + tr.rnd.Int64N(tr.capacity-1)
		}
		state, r = tr.decide(state, now, cost, 0)
		if r.Limited {
			now += r.RetryAfter.Microseconds()
			if now > 1<<52 {
				return
			}
			if state, r = tr.decide(state, now, cost, 0); r.Limited {
				law(2).broke(tr, "cost %d is refused at its RetryAfter", cost)
				return
			}
		}
		got += cost
	}
	// got units take got × each / units µs.
	want := mulDiv(got, each, units)
	diff := new(big.Int).Sub(big.NewInt(now-t0), want)
	if diff.CmpAbs(big.NewInt(tick+1)) > 0 {
		law(6).broke(tr, "a caller without pause got %d units in %d µs; at %d each %d µs that takes %v; seed %d", got, now-t0, units, each, want, tr.Seed)
	}
}

// checkLumps: the second half of law 6, for what does not come at equal
// intervals. A caller who asks for one unit at a time, without pause, gets each
// lump of units a period after the one before; the first two are still shaped by
// what was taken at the start. Where a lump is too large to ask for by the unit,
// it asks for the whole.
func (tr *trace) checkLumps() {
	tr.Helper()
	units, period := tr.Rate(tr.limit)
	cost := int64(1)
	if units > 200 {
		cost = units
	}
	state, r := tr.decide(nil, t0, tr.capacity, 0)
	now, third := int64(t0), int64(0)
	for got := int64(0); got < 100*units; {
		if state, r = tr.decide(state, now, cost, 0); r.Limited {
			if now += r.RetryAfter.Microseconds(); now > 1<<52 {
				return
			}
			continue
		}
		got += cost
		lump := got / units
		if got%units != 0 || lump < 3 {
			continue
		}
		if lump == 3 {
			third = now
		}
		if want := (lump - 3) * period.Microseconds(); now-third != want {
			law(6).broke(tr, "a caller without pause got %d × %d units in %d µs, and should in %d; seed %d", lump-3, units, now-third, want, tr.Seed)
			return
		}
	}
}

func (tr *trace) span() int64 {
	if tr.Span != nil {
		return tr.Span(tr.limit).Microseconds()
	}
	n := new(big.Int).Mul(big.NewInt(tr.capacity), big.NewInt(tr.limit.Period.Microseconds()))
	n.Add(n, big.NewInt(tr.limit.Count-1)).Div(n, big.NewInt(tr.limit.Count))
	if !n.IsInt64() || n.Int64() > longest {
		return longest
	}
	return n.Int64()
}

// checkStale: law 7. A clock that swings to and fro credits nothing; one that
// steps back by more than the full span finds a key never seen.
func (tr *trace) checkStale() {
	tr.Helper()
	span := tr.span()
	state, r := tr.decide(nil, t0, tr.capacity, 0)
	for range 100 {
		now := t0 - tr.rnd.Int64N(min(span, t0/2)+1)
		gap := t0 - now
		next, again := tr.decide(state, now, 1, 0)
		if !again.Limited {
			law(7).broke(tr, "drained, then the clock stepped back by %d µs of a span of %d: %+v", gap, span, again)
			return
		}
		if one := r.RetryAfter; tr.capacity == 1 && one.Microseconds() < longest-gap && again.RetryAfter != one+time.Duration(gap)*time.Microsecond {
			law(7).broke(tr, "RetryAfter %v, and after a step back by %d µs %v", one, gap, again.RetryAfter)
		}
		if reset := r.ResetAfter; reset.Microseconds() < longest-gap && again.ResetAfter != reset+time.Duration(gap)*time.Microsecond {
			law(7).broke(tr, "ResetAfter %v, and after a step back by %d µs %v", reset, gap, again.ResetAfter)
		}
		state = next
	}
	if t0-span-2_000_000 < -1<<52 {
		return
	}
	// A bucket that drains by the second keeps whole seconds of span.
	for _, beyond := range []int64{1_000_000, 2_000_000} {
		now := t0 - span - beyond
		_, used := tr.decide(state, now, 1, 0)
		if _, fresh := tr.decide(nil, now, 1, 0); used != fresh {
			law(7).broke(tr, "%d µs ahead, the span is %d: %+v, a fresh key %+v", span+beyond, span, used, fresh)
		}
	}
}

// checkChange: law 8, from tr's limit to another.
func (tr *trace) checkChange(other algorithms.Limit) {
	tr.Helper()
	to := newTrace(tr.reporter, tr.Spec, other)
	if to == nil {
		return
	}
	for range 20 {
		used := 1 + tr.rnd.Int64N(tr.capacity)
		state, _ := tr.decide(nil, t0, used, 0)
		_, look := to.decide(state, t0, 0, 0)
		if want := max(0, to.capacity-used); look.Remaining != want {
			law(8).broke(tr, "%d used of %d; then under %v %d remain, and should %d", used, tr.capacity, other, look.Remaining, want)
			return
		}
		// Some time later, the state still makes sense under both.
		to.state, to.now = state, t0+tr.rnd.Int64N(1+tr.interval())
		next, r := to.decide(to.state, to.now, 1, 0)
		to.checkRetry(next, r, 1)
		to.checkRemaining(next, r, 1)
		to.checkReset(next, r)
	}
}

// checkExtremes: law 9. decide checks the answers.
func (tr *trace) checkExtremes() {
	tr.Helper()
	for _, now := range []int64{t0, 0, -1 << 52, 1 << 52} {
		state := algorithms.State(nil)
		for _, cost := range []int64{1, tr.capacity, math.MaxInt64, math.MinInt64, -1, tr.capacity, tr.capacity - 1} {
			for _, age := range []int64{0, math.MaxInt64, math.MinInt64} {
				next, _ := tr.decide(state, now, cost, age)
				tr.decide(next, 1<<52, cost, age)
				tr.decide(next, -1<<52, cost, age)
				if cost > 0 {
					state = next
				}
			}
		}
	}
}
