package algorithms

import (
	_ "embed"
	"errors"
)

// SlidingCounter lets about Count units through in any Period, from two numbers:
// it takes what was used in the last whole window of the clock as spread evenly
// over it, and counts the part of it that is not yet a Period old,
//
//	estimate = previous × (1 − elapsed / Period) + current
//
// so a charge passes if estimate + Cost ≤ Count. Nothing is rounded: it compares
// whole numbers. It is how Cloudflare counts ("How we built rate limiting capable
// of scaling to millions of domains", 2017). Windows begin at whole multiples of
// the Period since 1970, UTC.
//
// In any span s it lets through at most Count + Count × s / Period units, like a
// bucket and unlike a fixed window: what is used at the end of a window makes room
// only as fast as the next one goes by. A caller who asks without pause gets
// Count − 1 units each Period, and with a Count of 1 one unit every two. A wait
// can be as long as two Periods.
//
// A give-back counts in the window that the charge was made in: the current or
// the previous one. Limit.Burst must be left out, and Count be at most one unit a
// microsecond.
type SlidingCounter struct{}

// Name is "sliding-counter".
func (SlidingCounter) Name() string { return "sliding-counter" }

// Params compiles l: count and period.
func (SlidingCounter) Params(l Limit) ([]int64, error) {
	err := checkWindow(l)
	if l.Period > 0 && l.Count > l.Period.Microseconds() {
		err = errors.Join(err, &FieldError{"Limit.Count", l.Count, "must be at most one unit a microsecond"})
	}
	if err != nil {
		return nil, err
	}
	return []int64{l.Count, l.Period.Microseconds()}, nil
}

// counter is a state at work: what was used in the window that begins at start,
// and in the one before it.
type counter struct {
	at, start         int64
	current, previous int64
}

// Decide makes one charge. The state is {at, current, previous}: at is the time
// of the first charge in the window that current counts.
func (SlidingCounter) Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	count, period := p[0], p[1]
	c := counterLoad(s, now, count, period)
	r := Result{Limit: count}
	left := c.remaining(now, count, period)
	switch {
	case cost > count:
		r.Limited, r.RetryAfter = true, Never
	case cost > 0:
		if r.Limited = cost > left; !r.Limited {
			c.current += cost
			left -= cost
		}
		if cost > left {
			r.RetryAfter = micros(c.wait(now, count, period, cost))
		}
	case cost == 0:
		if r.Limited = left < 1; r.Limited {
			r.RetryAfter = micros(c.wait(now, count, period, 1))
		}
	default:
		c.giveBack(givenBack(cost), max(now, c.start)-min(max(age, 0), maxInt), period)
		left = c.remaining(now, count, period)
	}
	r.Remaining = max(0, left)
	switch {
	case c.current > 0:
		r.ResetAfter = micros(c.start - now + 2*period)
	case c.previous > 0:
		r.ResetAfter = micros(c.start - now + period)
	}
	switch {
	case r.Limited || cost == 0:
		return append(dst, s...), r
	case c.current == 0 && c.previous == 0:
		return dst, r
	}
	return append(dst, c.at, c.current, c.previous), r
}

// counterLoad is s as it counts now. Where the clock stepped back, the window of
// s is the current one still.
func counterLoad(s State, now, count, period int64) counter {
	c := counter{at: now, start: now - floorMod(now, period)}
	if len(s) != 3 || s[0]-now > period {
		return c
	}
	start, current, previous := s[0]-floorMod(s[0], period), min(max(s[1], 0), count), min(max(s[2], 0), count)
	switch {
	case start >= c.start:
		return counter{s[0], start, current, previous}
	case start == c.start-period:
		c.previous = current
	}
	return c
}

// remaining is what could be taken now; below 0 where a lower limit has come.
func (c *counter) remaining(now, count, period int64) int64 {
	share, rest := mulDiv(c.previous, period-max(0, now-c.start), period)
	if rest > 0 {
		share++
	}
	return count - c.current - share
}

// wait is how long until cost fits. If it does when enough of the previous window
// has gone by, that is in this window; else this one, too, has to go by.
func (c *counter) wait(now, count, period, cost int64) int64 {
	ahead, room, used := period, count-cost-c.current, c.previous
	if room < 0 {
		ahead, room, used = 2*period, count-cost, c.current
	}
	if room >= used {
		return c.start - now + ahead - period
	}
	gone, _ := mulDiv(period, room, used)
	return c.start - now + ahead - gone
}

// giveBack gives back what was taken at a time.
func (c *counter) giveBack(back, taken, period int64) {
	switch {
	case taken >= c.start:
		c.current -= min(back, c.current)
	case taken >= c.start-period:
		c.previous -= min(back, c.previous)
	}
}

// Lua is the twin of Decide.
func (SlidingCounter) Lua() string { return slidingCounterLua }

//go:embed sliding_counter.lua
var slidingCounterLua string
