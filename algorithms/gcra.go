package algorithms

import _ "embed"

// GCRA is the generic cell rate algorithm: a bucket of Burst units that fills
// with each charge and drains at Count units each Period, without a step. The
// name is from ATM traffic policing (ITU-T I.371; ATM Forum TM 4.0, §4.4.2); its
// answers are those of redis-cell, whose max_burst is Burst − 1.
//
// It lets through at most Burst + Count × s / Period units in any span s. A
// caller who asks without pause gets Count units a Period exactly, as long as
// the bucket has room for one unit beside what drains in one microsecond (any
// Burst of 2 or more, at up to a million a second); with less room, Burst 1
// above all, the interval between two units is Period / Count rounded up to a
// whole microsecond, because the bound comes first.
//
// A key takes three numbers. Where Burst × Period is more than 2⁵³ µs, the
// bucket drains by the millisecond or by the second; a limit that does not fit
// even so is refused.
type GCRA struct{}

// Name is "gcra".
func (GCRA) Name() string { return "gcra" }

// Params compiles l for the meter.
func (GCRA) Params(l Limit) ([]int64, error) { return meterParams(l) }

// Decide makes one charge.
func (GCRA) Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	return meterDecide(dst, s, now, p, cost, age)
}

// Lua is the meter's twin.
func (GCRA) Lua() string { return meterLua }

//go:embed meter.lua
var meterLua string
