package algorithms

import "time"

// TokenBucket is the token bucket: it holds up to Burst tokens, is full at first,
// gains Count tokens each [Limit.Period], and each charge takes Cost of them or
// is refused. See RFC 2697 and RFC 2698 for its use in networks.
//
// Tokens that are there are the room in a leaky bucket, so with a refill that
// never pauses it is the same meter as [GCRA], to the last bit: it lets through at
// most Burst + Count × s / Period units in any span s. With Stepped, Count tokens
// arrive at once at the end of each whole Period, counted from the charge that
// found the bucket full; the bound is then Burst + Count × ⌈s / Period⌉, and a
// Burst below Count, with which the rest of each step would be lost, is refused.
type TokenBucket struct {
	Stepped bool // refill by whole periods
}

// Name is "token-bucket". Stepped or not, a state means the same.
func (TokenBucket) Name() string { return "token-bucket" }

// Params compiles l for the meter.
func (b TokenBucket) Params(l Limit) ([]int64, error) {
	if b.Stepped {
		return meterStepped(l)
	}
	return meterParams(l)
}

// Decide makes one charge.
func (TokenBucket) Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	return meterDecide(dst, s, now, p, cost, age)
}

// Lua is the meter's twin.
func (TokenBucket) Lua() string { return meterLua }

// Turn is that of the meter, unless Stepped.
func (b TokenBucket) Turn(p []int64, cost int64, r Result) (time.Duration, bool) {
	return meterTurn(p, cost, r), !b.Stepped
}
