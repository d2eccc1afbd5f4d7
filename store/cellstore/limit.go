package cellstore

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// limit is a Limit as CL.THROTTLE takes it.
type limit struct {
	burst, count, seconds int64
	interval              int64 // ns a unit, as the module cuts it
}

const (
	// longestDrain is the longest time, in ns, that a full bucket may take to drain:
	// 73 years. The module adds it to the time since 1970, and wraps in silence.
	longestDrain = 1 << 61

	// shortestInterval is 1 µs. The module counts what remains in whole
	// microseconds, and divides by what is left of a shorter one: by 0.
	shortestInterval = 1000
)

// compile is the limit of p, or what is wrong with it.
func compile(p *algorithms.Policy) (limit, error) {
	unsupported := func(format string, args ...any) (limit, error) {
		return limit{}, fmt.Errorf("weir: policy %s: "+format+": %w", append(append([]any{p.Name()}, args...), errors.ErrUnsupported)...)
	}
	switch p.Algorithm().(type) {
	case algorithms.GCRA, *algorithms.GCRA:
	default:
		return unsupported("redis-cell counts by GCRA only, not by %s", p.Algorithm().Name())
	}
	l := limit{burst: p.Limit().Burst}
	if l.burst == 0 {
		l.burst = p.Limit().Count
	}
	// The module takes whole seconds: 5 in 500 ms are 10 in 1 s.
	period := p.Limit().Period.Microseconds()
	part := gcd(period, int64(time.Second/time.Microsecond))
	times := int64(time.Second/time.Microsecond) / part
	l.seconds = period / part
	if p.Limit().Count > math.MaxInt64/times || l.seconds > longestDrain/int64(time.Second) {
		return unsupported("%v can't be said in whole seconds", p.Limit())
	}
	l.count = p.Limit().Count * times
	l.interval = int64(float64(l.seconds*int64(time.Second)) / float64(l.count))
	if l.interval < shortestInterval {
		return unsupported("redis-cell counts no more than a million units a second")
	}
	if l.burst > longestDrain/l.interval {
		return unsupported("%v takes more than 73 years to drain", p.Limit())
	}
	return l, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
