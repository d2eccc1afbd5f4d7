package algorithms

import "time"

// LeakyBucket is the leaky bucket as a meter, also known as the funnel: each
// charge pours Cost units in, Count units leak out each [Limit.Period], and what
// would make it overflow is refused. Burst is what it holds. The original is in
// J. Turner, New Directions in Communications, IEEE Communications Magazine
// 24(10), 1986.
//
// With a leak that never pauses it is the same meter as [GCRA], to the last bit:
// which name to use is a matter of taste. With Stepped the leak is lazy, as in
// many hand-written ones: Count units leave at once at the end of each whole
// Period, counted from the charge that found the bucket empty. It then lets
// through at most Burst + Count × ⌈s / Period⌉ units in any span s, and refuses a
// Burst below Count, with which the rest of each step would be lost.
//
// To hold requests until their turn instead of only counting them, the leaky
// bucket as a queue, see Pace in package middleware.
type LeakyBucket struct {
	Stepped bool // drain by whole periods
}

// Name is "leaky-bucket". Stepped or not, a state means the same.
func (LeakyBucket) Name() string { return "leaky-bucket" }

// Params compiles l for the meter.
func (b LeakyBucket) Params(l Limit) ([]int64, error) {
	if b.Stepped {
		return meterStepped(l)
	}
	return meterParams(l)
}

// Decide makes one charge.
func (LeakyBucket) Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	return meterDecide(dst, s, now, p, cost, age)
}

// Lua is the meter's twin.
func (LeakyBucket) Lua() string { return meterLua }

// Turn is that of the meter, unless Stepped.
func (b LeakyBucket) Turn(p []int64, cost int64, r Result) (time.Duration, bool) {
	return meterTurn(p, cost, r), !b.Stepped
}
