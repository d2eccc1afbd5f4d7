package memstore_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func TestConfigMistakes(t *testing.T) {
	p := policy(t, "p", algorithms.PerSecond(1))
	tooMany := int64(1) << 31 // negative in 32 bits
	for _, n := range []int{-1, int(tooMany)} {
		s := memstore.New(memstore.Config{MaxKeys: n})
		_, takeErr := store.Take(context.Background(), s, p, "k", 1)
		for _, err := range []error{s.Validate(p), takeErr} {
			if mistake := (*algorithms.FieldError)(nil); !errors.As(err, &mistake) || mistake.Value != n {
				t.Errorf("MaxKeys %d: %v", n, err)
			}
		}
	}
	zero := &memstore.Store{}
	if _, err := store.Take(context.Background(), zero, p, "k", 1); err == nil || zero.Validate(p) == nil {
		t.Errorf("a Store that New did not make: %v", err)
	}
	if err := memstore.New(memstore.Config{}).Validate(p, nil); err == nil {
		t.Error("a nil policy is valid")
	}
}

// A flood of fresh keys pushes out its own, and never one that is limited.
func TestFloodFreesNoLimitedKey(t *testing.T) {
	const limited, room = 500, 1000
	s := memstore.New(memstore.Config{MaxKeys: room, Clock: storetest.NewClock().Now})
	p := policy(t, "p", algorithms.PerMinute(3))
	for i := range limited {
		take(t, s, p, "limited"+strconv.Itoa(i), 3)
	}
	for i := range 50_000 {
		take(t, s, p, "flood"+strconv.Itoa(i), 1)
	}
	if s.Len() != room {
		t.Errorf("%d keys kept of %d", s.Len(), room)
	}
	for i := range limited {
		if r := take(t, s, p, "limited"+strconv.Itoa(i), 1); !r.Limited {
			t.Fatalf("limited key %d was forgotten", i)
		}
	}
}

func TestFullOfLimitedKeys(t *testing.T) {
	clock := storetest.NewClock()
	s := memstore.New(memstore.Config{MaxKeys: 10, Clock: clock.Now})
	p, wide := policy(t, "p", algorithms.PerMinute(1)), policy(t, "wide", algorithms.PerMinute(100))
	for i := range 10 {
		take(t, s, p, strconv.Itoa(i), 1)
	}
	ctx := context.Background()
	if r, err := store.Take(ctx, s, p, "new", 1); !errors.Is(err, memstore.ErrFull) || r != (algorithms.Result{}) {
		t.Errorf("a new key: %+v, %v", r, err)
	}
	if r := take(t, s, p, "new", 0); r.Limited {
		t.Errorf("a look needs no room: %+v", r)
	}
	if r := take(t, s, p, "3", 1); !r.Limited {
		t.Errorf("a known key: %+v", r)
	}
	// Nothing is charged of a group that finds no room.
	take(t, s, p, "3", -1)
	take(t, s, wide, "known", 1)
	group := []store.Charge{{Policy: wide, Key: "known", Cost: 5}, {Policy: wide, Key: "unknown", Cost: 5}}
	if err := s.Take(ctx, group, make([]algorithms.Result, 2)); !errors.Is(err, memstore.ErrFull) {
		t.Errorf("a group with one key too many: %v", err)
	}
	if r := take(t, s, wide, "known", 0); r.Remaining != 99 {
		t.Errorf("after a group that found no room: %+v", r)
	}
	// Once they are limited no longer there is room.
	clock.Advance(time.Minute)
	for i := range 10 {
		take(t, s, p, "later"+strconv.Itoa(i), 1)
	}
	if s.Len() != 10 {
		t.Errorf("%d keys kept of 10", s.Len())
	}
}

// The key nearest its reset goes first, whatever became of it since it was added.
func TestNearestResetGoes(t *testing.T) {
	clock := storetest.NewClock()
	s := memstore.New(memstore.Config{MaxKeys: 4, Clock: clock.Now})
	p := policy(t, "p", algorithms.PerMinute(10)) // a unit is 6 s
	take(t, s, p, "a", 5)
	take(t, s, p, "b", 2)
	take(t, s, p, "b", 5) // b: 7
	take(t, s, p, "c", 3)
	take(t, s, p, "d", 10)
	take(t, s, p, "d", -8) // d: 2, and limited no longer
	for _, goes := range []string{"d", "c", "a"} {
		take(t, s, p, "new"+goes, 9)
		if r := take(t, s, p, goes, 0); r.Remaining != 10 {
			t.Errorf("%s should have gone: %+v", goes, r)
		}
	}
	if r := take(t, s, p, "b", 0); r.Remaining != 3 {
		t.Errorf("b should have stayed: %+v", r)
	}
}

// A key that is limited longer than when it was added is not freed at the old
// time, and one that ran out is.
func TestExtendedKeyOutlivesItsFirstTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		p := policy(t, "p", algorithms.PerMinute(6)) // a unit is 10 s
		take(t, s, p, "k", 1)
		take(t, s, p, "short", 1)
		time.Sleep(9 * time.Second)
		take(t, s, p, "k", 5)
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if s.Len() != 1 {
			t.Errorf("%d keys kept", s.Len())
		}
		if r := take(t, s, p, "k", 0); r.Remaining != 4 {
			t.Errorf("6 taken, 49 s ago: %+v", r)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s.Len() != 0 {
			t.Errorf("%d keys kept at the end", s.Len())
		}
	})
}

// Keys of a day and of a second in one store: the short ones go in time.
func TestShortKeyBesideLongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		take(t, s, policy(t, "long", algorithms.PerDay(1)), "k", 1)
		time.Sleep(time.Hour)
		take(t, s, policy(t, "short", algorithms.PerSecond(1)), "k", 1)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if s.Len() != 1 {
			t.Errorf("%d keys kept", s.Len())
		}
	})
}

// State of more words than an entry holds.
func TestLongStates(t *testing.T) {
	clock := storetest.NewClock()
	s := memstore.New(memstore.Config{MaxKeys: 5000, Clock: clock.Now})
	p, err := algorithms.NewPolicy("p", fiveWords{}, algorithms.PerMinute(3))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		take(t, s, p, strconv.Itoa(i), 2)
	}
	for i := range 5000 {
		if r := take(t, s, p, strconv.Itoa(i), 1); r.Remaining != 0 || r.Limited {
			t.Fatalf("key %d: %+v", i, r)
		}
	}
	for i := range 5000 {
		if r := take(t, s, p, strconv.Itoa(i), -3); r.Remaining != 3 {
			t.Fatalf("key %d: %+v", i, r)
		}
	}
	if s.Len() != 0 {
		t.Errorf("%d keys kept", s.Len())
	}
}

// fiveWords is GCRA with two words more, which it checks.
type fiveWords struct{ algorithms.GCRA }

func (fiveWords) Name() string { return "five" }

func (f fiveWords) Decide(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	own := s
	if len(s) > 0 {
		if len(s) != 5 || s[3] != 11 || s[4] != 12 {
			return dst, algorithms.Result{Limit: -1}
		}
		own = s[:3]
	}
	next, r := f.GCRA.Decide(dst, own, now, p, cost, age)
	if len(next) > len(dst) {
		next = append(next, 11, 12)
	}
	return next, r
}

// The default clock runs on by the monotonic clock.
func TestDefaultClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		p := policy(t, "p", algorithms.PerMinute(1))
		take(t, s, p, "k", 1)
		for _, left := range []time.Duration{time.Minute, 30 * time.Second, time.Microsecond} {
			if r := take(t, s, p, "k", 1); r.RetryAfter != left {
				t.Errorf("%+v, want %v", r, left)
			}
			if left == time.Minute {
				time.Sleep(30 * time.Second)
			} else {
				time.Sleep(30*time.Second - time.Microsecond)
			}
		}
	})
}

func BenchmarkTake(b *testing.B) {
	s := memstore.New(memstore.Config{})
	p := policy(b, "p", algorithms.PerSecond(1_000_000))
	ctx := context.Background()
	b.Run("one key", func(b *testing.B) {
		for b.Loop() {
			_, _ = store.Take(ctx, s, p, "203.0.113.7", 1)
		}
	})
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	b.Run("65536 keys", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			_, _ = store.Take(ctx, s, p, keys[i&(len(keys)-1)], 1)
		}
	})
	b.Run("group of 4", func(b *testing.B) {
		group, results := make([]store.Charge, 4), make([]algorithms.Result, 4)
		for i := range group {
			group[i] = store.Charge{Policy: p, Key: keys[i], Cost: 1}
		}
		for b.Loop() {
			_ = s.Take(ctx, group, results)
		}
	})
	b.Run("flood", func(b *testing.B) {
		small := memstore.New(memstore.Config{MaxKeys: 1000})
		for i := 0; b.Loop(); i++ {
			_, _ = store.Take(ctx, small, p, keys[i&(len(keys)-1)], 1)
		}
	})
	runtime.KeepAlive(s)
}
