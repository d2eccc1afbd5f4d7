package algorithms

import "time"

// Never is the RetryAfter of a charge that can never pass, because its cost is
// above the capacity.
const Never time.Duration = -1

// Result answers one charge with redis-cell's five numbers. The zero Result
// (Limit 0) means that nobody decided.
//
// RetryAfter and ResetAfter are whole microseconds; one beyond 2⁵³ µs (285
// years) is cut to that.
type Result struct {
	Limited    bool          // refused?
	Limit      int64         // the capacity: the most that can ever be taken at once
	Remaining  int64         // what could be taken now
	RetryAfter time.Duration // until this same charge would pass (again): 0 if now, Never if its cost is above Limit
	ResetAfter time.Duration // until the key is as good as new: 0 if it is
}

// Cell is r as redis-cell's CL.THROTTLE prints it: limited (0 or 1), limit,
// remaining, seconds until a retry (−1 unless limited, and for Never), seconds
// until the reset. Like redis-cell it rounds up to whole seconds, but drops a
// rest of less than a millisecond.
//
// https://github.com/brandur/redis-cell#response
func (r Result) Cell() [5]int64 {
	cell := [5]int64{0, r.Limit, r.Remaining, -1, cellSeconds(r.ResetAfter)}
	if r.Limited {
		cell[0] = 1
		if r.RetryAfter != Never {
			cell[3] = cellSeconds(r.RetryAfter)
		}
	}
	return cell
}

func cellSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second >= time.Millisecond {
		s++
	}
	return s
}
