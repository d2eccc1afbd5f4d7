package algorithms_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Each number of a limit, at the last value that each algorithm takes, and one
// beyond. A mistake names the field and has its value and a reason.
func TestBoundsOfLimits(t *testing.T) {
	const (
		most    = int64(1) << 53
		longest = math.MaxInt64 / time.Second * time.Second
		window  = 1 << 51 * µs
		hour    = time.Hour
	)
	type (
		counter = algorithms.SlidingCounter
		log     = algorithms.SlidingLog
		fixed   = algorithms.FixedWindow
	)
	bucket, stepped := algorithms.GCRA{}, algorithms.LeakyBucket{Stepped: true}
	burst := func(l limit, n int64) limit { l.Burst = n; return l }
	count := func(n int64) limit { return limit{Count: n, Period: hour} }
	period := func(d time.Duration) limit { return limit{Count: 1, Period: d} }
	small, five := []int64{0, -1, math.MinInt64 + 1, math.MinInt64}, count(5)
	type field struct {
		name     string
		with     func(n int64) limit
		good     []int64
		bad      []int64 // each is the value of a mistake of this field
		together []int64 // each is a mistake of the limit as a whole
	}
	counts := func(n int64) limit { return count(n) }
	periods := func(n int64) limit { return period(time.Duration(n)) }
	bursts := func(n int64) limit { return burst(five, n) }
	shortPeriods := slices.Clip(append(small, 1, 999, 1001, int64(hour)+1))
	for _, c := range []struct {
		a      algorithms.Algorithm
		fields []field
	}{
		{bucket, []field{
			// An hour of 2⁵³ drains by the second, and its unit is part of a second.
			{"Count", counts, []int64{1, most / 3600}, append(small, most+1, math.MaxInt64), nil},
			{"Count", func(n int64) limit { return limit{Count: n, Period: µs} }, []int64{1, most}, append(small, most+1, math.MaxInt64), nil},
			{"Period", periods, []int64{int64(µs), int64(hour), int64(longest)}, append(shortPeriods, math.MaxInt64), []int64{math.MaxInt64 / 1000 * 1000}},
			{"Burst", bursts, []int64{0, 1, most / 720}, append(small[1:], most+1, math.MaxInt64), []int64{most/720 + 1, most}},
			{"Burst", func(n int64) limit { return limit{Count: 1, Period: µs, Burst: n} }, []int64{1, most}, append(small[1:], most+1), nil},
		}},
		{stepped, []field{
			{"Count", counts, []int64{1, most}, append(small, most+1, math.MaxInt64), nil},
			{"Period", periods, []int64{int64(µs), int64(most) * 1000}, append(shortPeriods, math.MaxInt64), []int64{(most + 1) * 1000}},
			{"Burst", bursts, []int64{0, 5, most / 3_600_000_000 * 5}, append(small[1:], 1, 4, most+1, math.MaxInt64), []int64{(most/3_600_000_000)*5 + 1, most}},
		}},
		{fixed{}, []field{
			{"Count", counts, []int64{1, most}, append(small, most+1, math.MaxInt64), nil},
			{"Period", periods, []int64{int64(µs), int64(window)}, append(shortPeriods, int64(window+µs), math.MaxInt64/1000*1000, math.MaxInt64), nil},
			{"Burst", bursts, []int64{0}, append(small[1:], 1, 5, most, math.MaxInt64), nil},
		}},
		{counter{}, []field{
			{"Count", counts, []int64{1, hour.Microseconds()}, append(small, hour.Microseconds()+1, most, math.MaxInt64), nil},
			{"Period", periods, []int64{int64(µs), int64(window)}, append(shortPeriods, int64(window+µs), math.MaxInt64), nil},
			{"Burst", bursts, []int64{0}, append(small[1:], 1, 5, math.MaxInt64), nil},
		}},
		{log{}, []field{
			{"Count", counts, []int64{1, algorithms.MaxLog}, append(small, algorithms.MaxLog+1, most, math.MaxInt64), nil},
			{"Period", periods, []int64{int64(µs), int64(window)}, append(shortPeriods, int64(window+µs), math.MaxInt64), nil},
			{"Burst", bursts, []int64{0}, append(small[1:], 1, 5, math.MaxInt64), nil},
		}},
	} {
		for _, f := range c.fields {
			for _, n := range f.good {
				if _, err := algorithms.NewPolicy("p", c.a, f.with(n)); err != nil {
					t.Errorf("%T, %s %d: %v", c.a, f.name, n, err)
				}
			}
			for _, n := range f.bad {
				wantMistake(t, c.a, f.with(n), "Limit."+f.name, valueOf(f.name, n))
			}
			for _, n := range f.together {
				wantMistake(t, c.a, f.with(n), "Limit", f.with(n).String())
			}
		}
	}
}

// valueOf is n as the mistake of a field has it.
func valueOf(field string, n int64) any {
	switch {
	case field == "Period":
		return time.Duration(n)
	case field == "Burst" && n == math.MinInt64:
		return 0 // which WithBurst(0) leaves there
	}
	return n
}

// wantMistake wants an error that names the field, and has its value and a reason.
func wantMistake(t *testing.T, a algorithms.Algorithm, l limit, field string, value any) {
	t.Helper()
	p, err := algorithms.NewPolicy("p", a, l)
	found := false
	for _, e := range flatten(err) {
		found = found || e.Field == field && e.Value == value && e.Reason != ""
	}
	if p != nil || !found {
		t.Errorf("%T, %+v: %v; want a mistake of %s = %v", a, l, err, field, value)
	}
}

// The numbers of a Ban, likewise.
func TestBoundsOfBans(t *testing.T) {
	const most, longest = int64(1) << 53, 1 << 51 * µs
	good := algorithms.Ban{Strikes: 3, Within: time.Minute, For: time.Hour}
	for _, c := range []struct {
		field    string
		set      func(b *algorithms.Ban, n int64)
		good     []int64
		bad      []int64
		duration bool
	}{
		{"Ban.Strikes", func(b *algorithms.Ban, n int64) { b.Strikes = n }, []int64{1, most}, []int64{0, -1, math.MinInt64, most + 1, math.MaxInt64}, false},
		{"Ban.Within", func(b *algorithms.Ban, n int64) { b.Within = time.Duration(n) }, []int64{1000, int64(longest)}, []int64{0, -1, math.MinInt64, 1, 999, int64(longest + µs), math.MaxInt64}, true},
		{"Ban.For", func(b *algorithms.Ban, n int64) { b.For = time.Duration(n) }, []int64{1000, int64(longest)}, []int64{0, -1, math.MinInt64, 1, 999, int64(longest + µs), math.MaxInt64}, true},
	} {
		for _, n := range c.good {
			b := good
			c.set(&b, n)
			if _, err := b.Policy("p"); err != nil {
				t.Errorf("%s = %d: %v", c.field, n, err)
			}
		}
		for _, n := range c.bad {
			b, value := good, any(n)
			if c.set(&b, n); c.duration {
				value = time.Duration(n)
			}
			wantMistake(t, b, limit{Count: b.Strikes, Period: b.Within}, c.field, value)
		}
	}
}
