package store

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgo/weir/algorithms"
)

// The bubbles of testing/synctest have one clock only, so these tests have the real
// ones. wallJumped is t as it reads after the wall clock was set by some seconds: the
// same moment of the monotonic clock, so many seconds further from the wall time that
// is now. Wall seconds stand in a Time's first word, above 30 bits
// of nanoseconds.
func wallJumped(test *testing.T, t time.Time, seconds int64) time.Time {
	test.Helper()
	moved := t
	*(*uint64)(unsafe.Pointer(&moved)) -= uint64(seconds) << 30
	if moved.Unix() != t.Unix()-seconds || moved.Sub(t) != 0 {
		test.Fatalf("%v is no other wall time than %v, or another monotonic one", moved, t)
	}
	return moved
}

// denies refuses everything for a minute, and counts how often it is asked.
type denies struct{ calls int }

func (*denies) Validate(...*algorithms.Policy) error { return nil }

func (d *denies) Take(_ context.Context, _ []Charge, results []algorithms.Result) error {
	d.calls++
	results[0] = algorithms.Result{Limited: true, Limit: 1, RetryAfter: time.Minute, ResetAfter: time.Minute}
	return nil
}

// A wall clock that is set, to either side and by however much, makes no denial
// longer or shorter.
func TestDenyCacheHeedsNoWallClock(t *testing.T) {
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerMinute(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int64{1, -1, 59, -59, 3600, -3600, 86_400 * 365, -86_400 * 365} {
		inner := &denies{}
		d := DenyCache(inner, time.Hour, 10).(*denyCache)
		// This test takes some time itself, which is part of what has passed.
		asks := func(calls int, wait time.Duration) {
			t.Helper()
			r, err := Take(t.Context(), d, p, "k", 1)
			if err != nil || r.RetryAfter > wait || r.RetryAfter < wait-15*time.Second || inner.calls != calls {
				t.Errorf("set by %d s: %+v, %v, the store was asked %d times; want %v and %d", seconds, r, err, inner.calls, wait, calls)
			}
		}
		asks(1, time.Minute)
		d.start = wallJumped(t, d.start, seconds)
		asks(1, time.Minute)
		d.start = d.start.Add(-40 * time.Second) // which is then how much more has passed
		asks(1, 20*time.Second)
		d.start = d.start.Add(-20 * time.Second)
		asks(2, time.Minute)
	}
}
