package algorithms

// The meter is a bucket without fractions. Its level is counted in parts of a
// unit, so many to the unit that a whole number of them drains each tick:
//
//	unit  = Period / tick   parts make one unit of cost   } both divided by
//	drain = Count           parts drain in one tick       } what they share
//
// so nothing is ever rounded, and a level says how long it takes to drain.
// A state is {level, at, unit}: the level stood at that many parts at the time
// at (µs). unit is kept because it changes with the limit.
//
// A level drains from at on and at moves by whole ticks only, so that polling
// loses nothing. An empty meter is not kept at all; what comes in the tick in which
// it will be empty begins to drain when it comes.

// meter's params.
const (
	meterBurst = iota // capacity in units
	meterUnit         // parts a unit
	meterDrain        // parts a tick
	meterTick         // µs
	meterLen
)

// maxWait is the longest wait that a Result tells, in µs: 285 years.
const maxWait = maxInt

func meterParams(l Limit) ([]int64, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	period, burst := l.Period.Microseconds(), l.capacity()
	for _, tick := range [...]int64{1, 1000, 1000_000} {
		if period%tick != 0 {
			break
		}
		unit, drain := period/tick, l.Count
		g := gcd(unit, drain)
		unit, drain = unit/g, drain/g
		if burst <= maxInt/unit {
			return []int64{burst, unit, drain, tick}, nil
		}
	}
	return nil, &FieldError{"Limit", l.String(),
		"burst and period are too large together to be counted exactly; use a smaller burst, or a period in whole seconds or of fewer digits"}
}

// meterStepped is the meter of a bucket that drains at once, once a period: a
// part is a unit, and a tick is the period.
func meterStepped(l Limit) ([]int64, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	period, burst := l.Period.Microseconds(), l.capacity()
	if burst < l.Count {
		return nil, &FieldError{"Limit.Burst", burst, "must be at least Count where Stepped is set, or the rest of each step is lost"}
	}
	if ceilDiv(burst, l.Count) > maxWait/period {
		return nil, &FieldError{"Limit", l.String(), "burst takes more than 285 years to drain; use a smaller burst or a shorter period"}
	}
	return []int64{burst, 1, l.Count, period}, nil
}

func meterDecide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	burst, unit, drain, tick := p[meterBurst], p[meterUnit], p[meterDrain], p[meterTick]
	full := burst * unit
	level, at := meterLoad(s, now, p)

	r := Result{Limit: burst}
	next := level // the level after the charge
	over := int64(0)
	switch {
	case cost > burst:
		r.Limited, r.RetryAfter = true, Never
	case cost > 0:
		need := cost * unit
		if r.Limited = need > full-level; !r.Limited {
			next = level + need
			if unit > 1 && level < drain {
				at = max(at, now) // what was there has drained by the next tick, maybe by now: nothing is credited twice
			}
		}
		over = next - (full - need)
	case cost == 0:
		over = level - (full - unit)
		r.Limited = over > 0
	default:
		next = level - meterStillThere(-max(cost, -burst)*unit, level, max(age, 0)-max(0, now-at)-min(grace, tick/2), p)
	}
	r.Remaining = (full - next) / unit
	if over > 0 {
		r.RetryAfter = micros(meterWait(over, drain, tick, at-now))
	}
	if next > 0 {
		r.ResetAfter = micros(meterWait(next, drain, tick, at-now))
	}
	switch {
	case r.Limited || cost == 0:
		return append(dst, s...), r
	case next == 0:
		return dst, r
	}
	return append(dst, next, at, unit), r
}

// meterLoad is the level at now, in today's parts, and the time from which it
// drains on: at most a tick before now, or after it if the clock stepped back.
func meterLoad(s State, now int64, p []int64) (level, at int64) {
	if len(s) != 3 || s[0] < 1 || s[2] < 1 { // no meter keeps that
		return 0, now
	}
	burst, unit, drain, tick := p[meterBurst], p[meterUnit], p[meterDrain], p[meterTick]
	level, at = s[0], s[1]
	if was := s[2]; was != unit {
		level = rescale(level, was, unit, burst)
	}
	level = min(level, burst*unit)
	if at > now {
		if at-now > meterWait(burst*unit, drain, tick, 0) {
			return 0, now
		}
		return level, at
	}
	ticks := (now - at) / tick
	if ticks >= ceilDiv(level, drain) {
		return 0, now
	}
	return level - ticks*drain, at + ticks*tick
}

// meterStillThere is how many of back parts, taken age µs before the last tick
// (after it, where age is negative), are certain to count still: the oldest drain
// first, so never more than the level. Long ticks, such as the steps of a stepped
// bucket, have the grace of windows, or the charge that a step is counted from
// could not be given back.
func meterStillThere(back, level, age int64, p []int64) int64 {
	drain, tick := p[meterDrain], p[meterTick]
	ticks := ceilDiv(max(age, 0), tick)
	if ticks >= ceilDiv(back, drain) {
		return 0
	}
	return min(back-ticks*drain, level)
}

// meterWait is the time in µs until so many parts have drained, if that begins
// ahead µs from now.
func meterWait(parts, drain, tick, ahead int64) int64 {
	ticks := ceilDiv(parts, drain)
	if ticks > (maxWait-ahead)/tick {
		return maxWait
	}
	return ahead + ticks*tick
}

// rescale is level parts of was to the unit as parts of now to the unit, rounded
// up: a change of limit gives nothing away. What is more than a full bucket
// comes back as one.
func rescale(level, was, now, burst int64) int64 {
	units, rest := level/was, level%was
	if units >= burst {
		return burst * now
	}
	q, r := mulDiv(now, rest, was)
	if r > 0 {
		q++
	}
	return units*now + q
}
