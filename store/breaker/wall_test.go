package breaker

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// away fails, and counts how often it is asked.
type away struct{ calls int }

func (*away) Validate(...*algorithms.Policy) error { return nil }

func (a *away) Take(context.Context, []store.Charge, []algorithms.Result) error {
	a.calls++
	return errors.New("away")
}

// cooldownEnd is where gobreaker keeps the end of a cooldown.
func cooldownEnd(t *testing.T, s store.Store) *time.Time {
	t.Helper()
	field := reflect.ValueOf(s.(*guarded).breaker).Elem().FieldByName("cb").Elem().FieldByName("expiry")
	if !field.IsValid() || field.Type() != reflect.TypeFor[time.Time]() {
		t.Fatal("gobreaker keeps the end of a cooldown elsewhere now: find it, or this test sees nothing")
	}
	return (*time.Time)(unsafe.Pointer(field.UnsafeAddr()))
}

// A wall clock that is set, to either side and by however much, makes no cooldown
// longer or shorter.
func TestBreakerHeedsNoWallClock(t *testing.T) {
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerMinute(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int64{1, -1, 3500, -3500, 7200, -7200, 86_400 * 365, -86_400 * 365} {
		inner := &away{}
		s := New(inner, Config{Failures: 1, Cooldown: time.Hour})
		asks := func(calls int) {
			t.Helper()
			if _, err := store.Take(t.Context(), s, p, "k", 1); err == nil || inner.calls != calls {
				t.Errorf("set by %d s: %v, the store was asked %d times, want %d", seconds, err, inner.calls, calls)
			}
		}
		asks(1)
		// The wall clock is set: the end, which was worked out before that, has the old
		// wall time. Its seconds stand above 30 bits of nanoseconds. (The bubbles of
		// testing/synctest have one clock only.)
		end := cooldownEnd(t, s)
		before := *end
		*(*uint64)(unsafe.Pointer(end)) -= uint64(seconds) << 30
		if end.Unix() != before.Unix()-seconds || end.Sub(before) != 0 {
			t.Fatalf("%v is no other wall time than %v, or another monotonic one", *end, before)
		}
		asks(1)
		*end = end.Add(-50 * time.Minute) // so much more of the cooldown has passed
		asks(1)
		*end = end.Add(-10 * time.Minute)
		asks(2)
	}
}
