package memstore_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// moments are those that a clock may jump to: a little and far to both sides of
// where it was, to both sides of 1970, and as far as it goes.
func moments(start time.Time) []time.Time {
	var all []time.Time
	for _, d := range []time.Duration{
		time.Microsecond, time.Millisecond, time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second, time.Minute, 24 * time.Hour, 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour,
	} {
		all = append(all, start.Add(d), start, start.Add(-d), start, start.Add(-d), start.Add(d))
	}
	for _, µs := range []int64{0, 1, -1, 0, -5_000_000, -5_000_001, 5_000_000, 1 << 53, -1 << 53, 1<<53 + 1, -1<<53 - 1, 1 << 62, -1 << 62, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, math.MaxInt64 - 5_000_000, math.MinInt64 + 5_000_000, 0} {
		all = append(all, time.UnixMicro(µs))
	}
	return append(all, time.Time{}, start, time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), start)
}

// Wherever the clock jumps to, a key never seen has what the limit says, and no
// more; one that has been charged has no more than that, and is told to wait no
// longer than the limit and the step can ask for.
func TestClockJumps(t *testing.T) {
	// What may be ahead, twice: a ban can be longer than its strikes count, and a
	// sliding counter's wait is two windows.
	const limit, most = 5, 2 * 2 * 8 * time.Second
	for _, a := range casetest.Algorithms() {
		t.Run(casetest.Form(a), func(t *testing.T) {
			clock := storetest.NewClock()
			s := memstore.New(memstore.Config{Clock: clock.Now})
			p := under(t, "p", a, algorithms.Limit{Count: limit, Period: 5 * time.Second})
			for i, now := range moments(clock.Now()) {
				clock.Set(now)
				for _, key := range []string{"always", now.String() + string(rune('a'+i))} {
					passed := 0
					for range limit + 2 {
						r := take(t, s, p, key, 1)
						if r.Limit != limit || r.Remaining < 0 || r.Remaining > limit || r.RetryAfter < 0 || r.RetryAfter > most || r.ResetAfter < 0 || r.ResetAfter > most || r.Limited && (r.RetryAfter == 0 || r.Remaining > 0) {
							t.Errorf("at %v: %+v", now, r)
						}
						if !r.Limited {
							passed++
						}
					}
					if passed > limit || key != "always" && passed != limit {
						t.Errorf("at %v (%d µs), key %q: %d passed of %d", now, now.UnixMicro(), key, passed, limit)
					}
					if r := take(t, s, p, key, 0); !r.Limited {
						t.Errorf("at %v, a look: %+v", now, r)
					}
				}
			}
			if s.Len() == 0 {
				t.Error("nothing is kept: this test sees nothing")
			}
		})
	}
}
