package algorithms_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store/storetest"
)

type (
	limit = algorithms.Limit
	spec  = storetest.Spec
)

// lumps is Count units each Period, all at once.
func lumps(l limit) (int64, time.Duration) { return l.Count, l.Period }

// ceilPeriods is how many periods there are in a span, rounded up.
func ceilPeriods(l limit, span time.Duration) int64 {
	return int64((span + l.Period - 1) / l.Period)
}

func windowSpan(l limit) time.Duration { return l.Period }

func TestLaws(t *testing.T) {
	stepped := func(a algorithms.Algorithm) spec {
		return spec{
			Algorithm: a,
			Bound: func(l limit, span time.Duration) int64 {
				return max(l.Count, l.Burst) + l.Count*ceilPeriods(l, span)
			},
			Rate: lumps,
			Span: func(l limit) time.Duration {
				return l.Period * time.Duration((max(l.Count, l.Burst)+l.Count-1)/l.Count)
			},
		}
	}
	window := func(w algorithms.FixedWindow) spec {
		return spec{
			Algorithm: w,
			Bound:     func(l limit, span time.Duration) int64 { return l.Count * (ceilPeriods(l, span) + 1) },
			Rate:      lumps,
			Span:      windowSpan,
		}
	}
	ban := func(b algorithms.Ban) spec {
		shorter, longer := min(b.Within, b.For), max(b.Within, b.For)
		return spec{
			Algorithm: b,
			Limits:    []limit{{Count: b.Strikes, Period: b.Within}},
			Bound: func(_ limit, span time.Duration) int64 {
				return b.Strikes * (int64((span+shorter-1)/shorter) + 1)
			},
			Rate: func(limit) (int64, time.Duration) { return b.Strikes, b.For },
			Span: func(limit) time.Duration { return longer },
		}
	}
	for name, s := range map[string]spec{
		"GCRA":                {Algorithm: algorithms.GCRA{}},
		"LeakyBucket":         {Algorithm: algorithms.LeakyBucket{}},
		"TokenBucket":         {Algorithm: algorithms.TokenBucket{}},
		"LeakyBucket stepped": stepped(algorithms.LeakyBucket{Stepped: true}),
		"TokenBucket stepped": stepped(algorithms.TokenBucket{Stepped: true}),
		"FixedWindow":         window(algorithms.FixedWindow{}),
		"FixedWindow aligned": window(algorithms.FixedWindow{Aligned: true}),
		"FixedWindow UTC+8":   window(algorithms.FixedWindow{Aligned: true, Offset: 8 * time.Hour}),
		"FixedWindow UTC-3:30": window(algorithms.FixedWindow{
			Aligned: true, Offset: -(3*time.Hour + 30*time.Minute),
		}),
		"SlidingCounter": {
			Algorithm: algorithms.SlidingCounter{},
			Rate: func(l limit) (int64, time.Duration) {
				if l.Count == 1 {
					return 1, 2 * l.Period
				}
				return l.Count - 1, l.Period
			},
			Span: windowSpan,
		},
		"SlidingLog": {
			Algorithm: algorithms.SlidingLog{},
			Bound:     func(l limit, span time.Duration) int64 { return l.Count * (int64(span/l.Period) + 1) },
			Rate:      lumps,
			Span:      windowSpan,
		},
		"Ban":        ban(algorithms.Ban{Strikes: 5, Within: time.Minute, For: time.Hour}),
		"Ban short":  ban(algorithms.Ban{Strikes: 3, Within: time.Minute, For: 7 * time.Second}),
		"Ban at 1":   ban(algorithms.Ban{Strikes: 1, Within: time.Second, For: 24 * time.Hour}),
		"Ban at 1e6": ban(algorithms.Ban{Strikes: 1_000_000, Within: 24 * time.Hour, For: 3 * time.Second}),
	} {
		t.Run(name, func(t *testing.T) { storetest.Laws(t, s) })
	}
}

// With room for one unit only, the bound comes before the rate: the interval is
// a whole number of microseconds.
func TestLawsWithoutRoom(t *testing.T) {
	storetest.Laws(t, spec{
		Algorithm: algorithms.GCRA{},
		Limits: []limit{
			algorithms.PerSecond(3).WithBurst(1),
			algorithms.PerSecond(7).WithBurst(1),
			algorithms.PerSecond(300_000).WithBurst(1),
			{Count: 10, Period: 13 * time.Second, Burst: 1},
		},
		Rate: func(l limit) (int64, time.Duration) {
			each := (l.Period.Microseconds() + l.Count - 1) / l.Count
			return 1, time.Duration(each) * time.Microsecond
		},
	})
}
