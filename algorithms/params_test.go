package algorithms_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

const year = 365 * 24 * time.Hour

func params(t *testing.T, l algorithms.Limit) []int64 {
	t.Helper()
	p, err := algorithms.GCRA{}.Params(l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func decide(s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	return algorithms.GCRA{}.Decide(nil, s, now, p, cost, age)
}

// The numbers of a limit are in lowest terms, and of the finest tick that fits.
func TestParams(t *testing.T) {
	for l, want := range map[algorithms.Limit][]int64{
		algorithms.PerMinute(30):                             {30, 2_000_000, 1, 1},
		algorithms.PerDay(1_000_000).WithBurst(1_000_000):    {1_000_000, 86_400, 1, 1},
		{Count: 1, Period: year, Burst: 1000}:                {1000, 31_536_000_000, 1, 1000},
		{Count: 7, Period: year, Burst: 900_000}:             {900_000, 31_536_000, 7, 1_000_000},
		{Count: 1, Period: time.Microsecond, Burst: 1 << 53}: {1 << 53, 1, 1, 1},
	} {
		if p := params(t, l); !slices.Equal(p, want) {
			t.Errorf("%v: %v, want %v", l, p, want)
		}
	}
}

// Units that were used under one limit stay used under another, up to its
// capacity; a part of a unit counts as it is, rounded up.
func TestLimitChange(t *testing.T) {
	wide, low, other := params(t, algorithms.PerMinute(30).WithBurst(16)), params(t, algorithms.PerMinute(30).WithBurst(5)), params(t, algorithms.PerMinute(7))
	s, _ := decide(nil, 0, wide, 16, 0)
	if _, r := decide(s, 0, low, 0, 0); r.Remaining != 0 || r.ResetAfter != 10*time.Second {
		t.Errorf("16 used of 5: %+v", r)
	}
	s, _ = decide(nil, 0, wide, 2, 0)
	s, _ = decide(s, 1_000_000, wide, 1, 0)
	if _, r := decide(s, 1_000_000, other, 0, 0); r.Remaining != 4 {
		t.Errorf("2.5 used of 7: %+v", r)
	}
	huge, day := params(t, algorithms.Limit{Count: 1, Period: time.Microsecond, Burst: 1 << 53}), params(t, algorithms.PerDay(3))
	s, _ = decide(nil, 0, huge, 1<<53, 0)
	if _, r := decide(s, 0, day, 0, 0); r.Remaining != 0 || r.ResetAfter != 24*time.Hour {
		t.Errorf("2^53 used of 3: %+v", r)
	}
	// A unit and a third, in thirds, is 2⅔ halves, which count as three: with two,
	// one more would fit.
	thirds := params(t, algorithms.Limit{Count: 1, Period: 3 * time.Microsecond, Burst: 2})
	halves := params(t, algorithms.Limit{Count: 1, Period: 2 * time.Microsecond, Burst: 2})
	s, _ = decide(nil, 0, thirds, 1, 0)
	s, _ = decide(s, 2, thirds, 1, 0)
	if _, r := decide(s, 2, halves, 1, 0); !r.Limited || r.RetryAfter != time.Microsecond {
		t.Errorf("1⅓ used of 2: %+v", r)
	}
}

// Where a level drains by the second, a give-back counts a part of one as whole.
func TestCoarseAge(t *testing.T) {
	p := params(t, algorithms.Limit{Count: 7, Period: year, Burst: 900_000})
	s, _ := decide(nil, 0, p, 1, 0)
	if _, r := decide(s, 0, p, -1, 10_001); r.Remaining != 899_999 {
		t.Errorf("a unit of 10 ms and 1 µs ago: %+v", r)
	}
	if _, r := decide(s, 0, p, -1, 10_000); r.Remaining != 900_000 {
		t.Errorf("a unit of 10 ms ago, which may be the caller's way of measuring: %+v", r)
	}
}
