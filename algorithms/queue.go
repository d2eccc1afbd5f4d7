package algorithms

import "time"

// Queue is an [Algorithm] whose charges leave one after the other at a steady
// rate, so that each that is let in has a turn. A bucket that drains without a
// step is one: a charge's turn comes when what was in the bucket before it has
// drained. It is what Pace in package middleware holds requests by.
type Queue interface {
	Algorithm

	// Turn is how long after a charge was made its turn comes: 0 if at once, and
	// never longer than the charge's ResetAfter. p and cost are what Decide was
	// given, r is what it answered. ok is false where the algorithm, as it is set
	// up, keeps no queue; that does not depend on the arguments.
	Turn(p []int64, cost int64, r Result) (wait time.Duration, ok bool)
}

// Turn is how long after a charge of this policy was made its turn comes; ok is
// false where the policy's algorithm is no [Queue].
func (p *Policy) Turn(cost int64, r Result) (wait time.Duration, ok bool) {
	q, ok := p.algorithm.(Queue)
	if !ok {
		return 0, false
	}
	return q.Turn(p.params, cost, r)
}

// Turn is the time until what was in the bucket before the charge has drained.
func (GCRA) Turn(p []int64, cost int64, r Result) (time.Duration, bool) {
	return meterTurn(p, cost, r), true
}

// meterTurn is ResetAfter without the time that the charge itself drains for. Both
// are rounded up to a tick, so that a charge that finds the bucket empty waits for
// nothing; a turn can come a part of a tick early, and no more for the turns
// before it.
func meterTurn(p []int64, cost int64, r Result) time.Duration {
	if r.Limited || cost <= 0 {
		return 0
	}
	tick := p[meterTick]
	own := ceilDiv(min(cost, p[meterBurst])*p[meterUnit], p[meterDrain])
	return max(0, r.ResetAfter-micros(min(own, maxWait/tick)*tick))
}
