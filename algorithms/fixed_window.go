package algorithms

import (
	_ "embed"
	"errors"
	"time"
)

// FixedWindow lets Count units through in each window of one Period. A window
// opens at a key's first charge and is over a Period later; the next opens at the
// next charge, not before. It is what INCR and EXPIRE count in Redis.
//
// With Aligned, windows are those of the clock: they begin at whole multiples of
// the Period since 1970, in the time that is Offset ahead of UTC. A Period of 24
// hours and an Offset of 8 hours give days that begin at midnight, UTC+8. (1970
// began on a Thursday, and so do aligned weeks; Offset 3 days makes that Monday.)
// A zone with daylight saving has no fixed offset, and is not offered.
//
// The price of one number a key is the double burst: Count units just before the
// end of a window and Count more just after it, 2 × Count within a microsecond (one
// less where the first of them opened the window). In any span s it lets through
// at most Count × (⌈s / Period⌉ + 1) units. Where that is too much, use
// [SlidingCounter], [SlidingLog] or a bucket.
//
// A give-back counts in the window that the charge was made in, and in no other; of
// a window that is not Aligned, also if the charge seems up to 10 ms older than it,
// since the caller's measure of that has a round trip in it.
// A caller who asks without pause gets Count units each Period. Limit.Burst must
// be left out.
type FixedWindow struct {
	Aligned bool          // windows by the clock
	Offset  time.Duration // of Aligned windows: what their time is ahead of UTC
}

// Name is "fixed-window". Aligned or not, a state means the same.
func (FixedWindow) Name() string { return "fixed-window" }

// fixedWindow's params.
const (
	windowCount  = iota
	windowPeriod // µs
	windowOffset // µs, at least 0 and below the period; −1 if not aligned
)

// Params compiles l.
func (w FixedWindow) Params(l Limit) ([]int64, error) {
	err := checkWindow(l)
	switch {
	case w.Offset != 0 && !w.Aligned:
		err = errors.Join(err, &FieldError{"FixedWindow.Offset", w.Offset, "needs Aligned: other windows open at a key's first charge"})
	case w.Offset%time.Microsecond != 0:
		err = errors.Join(err, &FieldError{"FixedWindow.Offset", w.Offset, "must be a whole number of microseconds"})
	}
	if err != nil {
		return nil, err
	}
	p := []int64{l.Count, l.Period.Microseconds(), -1}
	if w.Aligned {
		p[windowOffset] = floorMod(w.Offset.Microseconds(), p[windowPeriod])
	}
	return p, nil
}

// Decide makes one charge. The state is {at, used}: so many units were used in
// the window that was opened, or whose first charge was made, at the time at.
func (FixedWindow) Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	count := p[windowCount]
	at, used, left := windowLoad(s, now, p)
	r := Result{Limit: count}
	next := used
	switch {
	case cost > count:
		r.Limited, r.RetryAfter = true, Never
	case cost > 0:
		if r.Limited = cost > count-used; !r.Limited {
			next = used + cost
		}
		if cost > count-next {
			r.RetryAfter = micros(left)
		}
	case cost == 0:
		if r.Limited = used >= count; r.Limited {
			r.RetryAfter = micros(left)
		}
	default:
		next -= min(used, windowStillThere(givenBack(cost), now, at, age, p))
	}
	r.Remaining = count - next
	if next > 0 {
		r.ResetAfter = micros(left)
	}
	switch {
	case r.Limited || cost == 0:
		return append(dst, s...), r
	case next == 0:
		return dst, r
	}
	return append(dst, at, next), r
}

// windowLoad is the window that is open now, what was used in it, and how long it
// stays open. Where none is, one opens now.
func windowLoad(s State, now int64, p []int64) (at, used, left int64) {
	period := p[windowPeriod]
	if len(s) == 2 && s[1] > 0 && s[0]-now <= period {
		if left = s[0] - now + period - windowPhase(s[0], p); left > 0 {
			return s[0], min(s[1], p[windowCount]), left
		}
	}
	return now, 0, period - windowPhase(now, p)
}

// windowPhase is how far into its window at is.
func windowPhase(at int64, p []int64) int64 {
	if p[windowOffset] < 0 {
		return 0
	}
	return floorMod(at+p[windowOffset], p[windowPeriod])
}

// windowStillThere is how much of what was taken age µs ago was taken in the
// window that is open.
func windowStillThere(back, now, at, age int64, p []int64) int64 {
	slack := min(grace, p[windowPeriod]/2)
	if p[windowOffset] >= 0 {
		slack = windowPhase(at, p) // an aligned window begins before its first charge
	}
	if min(age, maxInt) > max(now-at, 0)+slack {
		return 0
	}
	return back
}

// Lua is the twin of Decide.
func (FixedWindow) Lua() string { return fixedWindowLua }

//go:embed fixed_window.lua
var fixedWindowLua string
