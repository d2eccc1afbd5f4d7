package algorithms

import (
	"errors"
	"math"
	"time"
)

// maxInt is the largest whole number up to which a double holds each one: no
// count, level or time in this package goes beyond it.
const maxInt = 1 << 53

// Limit is how much is allowed: Count units each Period, and at most Burst at
// once. Burst 0 means Count. What Burst says exactly is the algorithm's to
// document; windows refuse one.
//
// The zero Limit is not valid: neither "nothing" nor "everything" is said with
// a number.
type Limit struct {
	Count  int64         // units a Period; at least 1
	Period time.Duration // a positive, whole number of microseconds
	Burst  int64         // the most at once; at least 1, or 0 for Count
}

// PerSecond allows n units a second, n at once.
func PerSecond(n int64) Limit { return Limit{Count: n, Period: time.Second} }

// PerMinute allows n units a minute, n at once.
func PerMinute(n int64) Limit { return Limit{Count: n, Period: time.Minute} }

// PerHour allows n units an hour, n at once.
func PerHour(n int64) Limit { return Limit{Count: n, Period: time.Hour} }

// PerDay allows n units in 24 hours, n at once.
func PerDay(n int64) Limit { return Limit{Count: n, Period: 24 * time.Hour} }

// burstZero stands for a burst of 0 that was asked for by name: in the field,
// 0 means Count, and a mistake must not turn into that.
const burstZero = math.MinInt64

// WithBurst is l with at most n at once. An n below 1 is a mistake, which the
// constructor that is given the Limit reports.
func (l Limit) WithBurst(n int64) Limit {
	if n == 0 {
		n = burstZero
	}
	l.Burst = n
	return l
}

// capacity is Burst, or Count where Burst is left out.
func (l Limit) capacity() int64 {
	if l.Burst == 0 {
		return l.Count
	}
	return l.Burst
}

// check reports what is wrong with l under any algorithm.
func (l Limit) check() error {
	var errs []error
	bad := func(field string, value any, reason string) {
		errs = append(errs, &FieldError{"Limit." + field, value, reason})
	}
	switch {
	case l.Count < 1:
		bad("Count", l.Count, "must be at least 1; to pass everything leave the rule out, to refuse everything answer so in the handler")
	case l.Count > maxInt:
		bad("Count", l.Count, "must be at most 2^53")
	}
	switch {
	case l.Period <= 0:
		bad("Period", l.Period, "must be positive")
	case l.Period%time.Microsecond != 0:
		bad("Period", l.Period, "must be a whole number of microseconds; a bare number counts nanoseconds")
	}
	switch {
	case l.Burst == burstZero:
		bad("Burst", 0, "must be at least 1 where one is given")
	case l.Burst < 0:
		bad("Burst", l.Burst, "must be at least 1; for Count, give none")
	case l.Burst > maxInt:
		bad("Burst", l.Burst, "must be at most 2^53")
	}
	return errors.Join(errs...)
}
