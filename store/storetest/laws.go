package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Spec is an algorithm and what it documents beyond the laws. The zero functions
// are those of a bucket.
type Spec struct {
	Algorithm algorithms.Algorithm

	// Limits to check under; nil means [DefaultLimits] that the algorithm accepts.
	Limits []algorithms.Limit

	// Bound is the most units let through in a span of time, both ends in it; nil
	// means Burst + Count × span / Period.
	Bound func(l algorithms.Limit, span time.Duration) int64

	// Rate is what a caller who asks without pause gets: units each period, all of
	// them before the next period begins. Nil means Count each Period, one after
	// the other at equal intervals.
	Rate func(l algorithms.Limit) (units int64, each time.Duration)

	// Span is the limit's full span, beyond which state ahead of the clock is
	// stale; nil means Burst × Period / Count, rounded up to 1 µs.
	Span func(l algorithms.Limit) time.Duration

	// Seed of the random traces; 0 means a new one, which failures name.
	Seed uint64
}

// DefaultLimits are easy and awkward ones.
func DefaultLimits() []algorithms.Limit {
	const year = 365 * 24 * time.Hour
	return []algorithms.Limit{
		algorithms.PerMinute(1),
		algorithms.PerSecond(3),
		{Count: 7, Period: 3 * time.Second},
		algorithms.PerMinute(30).WithBurst(16),
		algorithms.PerMinute(30).WithBurst(3),
		algorithms.PerSecond(10).WithBurst(1),
		algorithms.PerSecond(300_000),
		algorithms.PerSecond(1_000_000).WithBurst(5),
		{Count: 13, Period: 86_401 * time.Second},
		{Count: 3, Period: 7 * time.Microsecond, Burst: 20},
		algorithms.PerDay(1_000_000).WithBurst(1_000_000),
		{Count: 10_000_000, Period: 30 * 24 * time.Hour},
		{Count: 1, Period: year, Burst: 1000},
		{Count: 7, Period: year, Burst: 900_000},
	}
}

// Laws checks that an algorithm holds the laws in the comment of
// [algorithms.Algorithm].
func Laws(t *testing.T, s Spec) {
	if s.Seed == 0 {
		s.Seed = rand.Uint64()
	}
	for _, l := range s.limits() {
		t.Run(name(l), func(t *testing.T) {
			checkLimit(t, s, l)
		})
	}
	t.Run("any limit", func(t *testing.T) { checkAnyLimit(t, s) })
}

func name(l algorithms.Limit) string {
	return fmt.Sprintf("%d per %v burst %d", l.Count, l.Period, l.Burst)
}

func (s Spec) limits() []algorithms.Limit {
	if s.Limits != nil {
		return s.Limits
	}
	var fit []algorithms.Limit
	for _, l := range DefaultLimits() {
		if _, err := s.Algorithm.Params(l); err == nil {
			fit = append(fit, l)
		}
	}
	return fit
}

// checkLimit holds s to all laws under one limit.
func checkLimit(r reporter, s Spec, l algorithms.Limit) {
	r.Helper()
	tr := newTrace(r, s, l)
	if tr == nil {
		return
	}
	tr.walk(600, false)
	tr.walk(600, true)
	tr.checkGiveBack()
	tr.checkBound()
	if s.Rate != nil {
		tr.checkLumps()
	} else {
		tr.checkRate()
	}
	tr.checkStale()
	for _, other := range s.limits() {
		tr.checkChange(other)
	}
	tr.checkExtremes()
}

// checkAnyLimit asks Params for random limits, most of them absurd.
func checkAnyLimit(r reporter, s Spec) {
	r.Helper()
	rnd := rand.New(rand.NewPCG(s.Seed, 9))
	for range 3000 {
		l := algorithms.Limit{Count: wild(rnd), Period: time.Duration(wild(rnd)), Burst: wild(rnd) * rnd.Int64N(2)}
		if rnd.IntN(2) == 0 {
			l.Period = l.Period / time.Microsecond * time.Microsecond
		}
		if _, err := s.Algorithm.Params(l); err != nil {
			if mistake := (*algorithms.FieldError)(nil); !errors.As(err, &mistake) {
				law(9).broke(r, "Params(%+v) = %v, which is no *FieldError", l, err)
			}
			continue
		}
		if l.Count < 1 || l.Period < 1 || l.Burst < 0 {
			law(9).broke(r, "Params accepts %+v", l)
			continue
		}
		newTrace(r, s, l).checkExtremes()
	}
}

// wild is a number of any size, near a power of two as often as not.
func wild(rnd *rand.Rand) int64 {
	n := int64(1) << rnd.IntN(63)
	switch rnd.IntN(6) {
	case 0:
		return n
	case 1:
		return n - 1
	case 2:
		return -n
	case 3:
		return math.MaxInt64 - rnd.Int64N(2)
	}
	return rnd.Int64N(n) + 1
}
