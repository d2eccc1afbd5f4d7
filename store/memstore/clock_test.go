package memstore

import (
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store/storetest"
)

// The default clock counts from the Unix epoch.
func TestDefaultClockIsUnix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		for range 2 {
			if got, want := s.clock(), time.Now().UnixMicro(); got != want {
				t.Errorf("%d, want %d", got, want)
			}
			time.Sleep(time.Hour)
		}
	})
}

// A key that is limited no longer, and again when the clock steps back, is not
// pushed out.
func TestStepBackForgetsNoLimitedKey(t *testing.T) {
	clock := storetest.NewClock()
	s := New(Config{MaxKeys: 2, Clock: clock.Now})
	p := gcra(t, "p", algorithms.PerMinute(2)) // a unit is 30 s
	charge(t, s, p, "limited", 2)
	charge(t, s, p, "x", 1)
	clock.Advance(31 * time.Second)
	charge(t, s, p, "y", 1) // in the place of x; "limited" is found to be limited no longer
	clock.Advance(-20 * time.Second)
	charge(t, s, p, "z", 1)
	if r := charge(t, s, p, "limited", 1); !r.Limited {
		t.Errorf("a limited key was forgotten: %+v", r)
	}
	s.check(t)
}

// Keys that are limited to the end of their life are freed too, at that moment.
func TestLimitedKeysAreFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		charge(t, s, gcra(t, "day", algorithms.PerDay(1)), "k", 1)
		charge(t, s, gcra(t, "second", algorithms.PerSecond(1)), "k", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.Len() != 1 {
			t.Errorf("after a minute: %d keys", s.Len())
		}
		time.Sleep(24*time.Hour - time.Minute)
		synctest.Wait()
		if s.Len() != 0 {
			t.Errorf("after a day: %d keys", s.Len())
		}
	})
}

// At the Unix epoch the timer is set as at any other time.
func TestEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := New(Config{Clock: func() time.Time { return time.UnixMilli(-500).Add(time.Since(start)) }})
		charge(t, s, gcra(t, "p", algorithms.PerSecond(1)), "k", 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.Len() != 0 {
			t.Errorf("%d keys are kept", s.Len())
		}
	})
}

// Where the clock jumps ahead, short keys do not wait for the timer of a long one.
func TestJumpAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := storetest.NewClock()
		s := New(Config{Clock: clock.Now})
		charge(t, s, gcra(t, "day", algorithms.PerDay(1)), "k", 1)
		clock.Advance(25 * time.Hour)
		p := gcra(t, "p", algorithms.PerSecond(1))
		for i := range 100 {
			charge(t, s, p, strconv.Itoa(i), 1)
		}
		clock.Advance(time.Minute)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.Len() != 0 {
			t.Errorf("%d keys are kept, which ran out a minute ago", s.Len())
		}
	})
}

// A clock that jumps while nobody calls is noticed within a minute.
func TestJumpUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := storetest.NewClock()
		s := New(Config{Clock: clock.Now})
		charge(t, s, gcra(t, "day", algorithms.PerDay(1)), "k", 1)
		clock.Advance(25 * time.Hour)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.Len() != 0 {
			t.Errorf("%d keys are kept", s.Len())
		}
	})
}

// Where the clock jumps back by centuries, the timer does not spin.
func TestJumpBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		var back atomic.Bool
		s := New(Config{Clock: func() time.Time {
			if readings.Add(1) < 10_000 && back.Load() {
				return time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)
			}
			return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		}})
		charge(t, s, gcra(t, "p", algorithms.PerMinute(1)), "k", 1)
		back.Store(true)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := readings.Load(); n > int64(1+11*len(s.shards)) {
			t.Errorf("%d readings in ten minutes, by %d shards", n, len(s.shards))
		}
	})
}

// A clock an hour a second ahead of the timer, and calls without a pause, do not
// put it off.
func TestFastClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := New(Config{Clock: func() time.Time { return start.Add(3600 * time.Since(start)) }})
		p := gcra(t, "p", algorithms.PerDay(1))
		most := 0
		for i := range 20 * 60 * 5 {
			charge(t, s, p, strconv.Itoa(i), 1)
			most = max(most, s.Len())
			time.Sleep(50 * time.Millisecond)
		}
		if room := 20 * (24 + 60 + 1); most > room { // 24 s until one runs out, and a minute
			t.Errorf("%d keys were kept, want %d at most", most, room)
		}
	})
}

// A charge just after the timer is due, and before it has run, does not put it off.
func TestDueTimerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		now := s.clock()
		s.wake(now+5_000_000, now)
		s.wake(now+9_000_000, now)
		fires := s.sweep.fires
		if want := time.Now().Add(5 * time.Second); !fires.Equal(want) {
			t.Errorf("it fires at %v, want %v", fires, want)
		}
		time.Sleep(5*time.Second - 1)
		s.wake(now+9_000_000, now+5_000_001)
		if !s.sweep.fires.Equal(fires) {
			t.Errorf("put off from %v to %v", fires, s.sweep.fires)
		}
		s = New(Config{})
		s.wake(now+9_000_000, now)
		s.wake(now+2_000_000, now)
		if want := time.Now().Add(2 * time.Second); !s.sweep.fires.Equal(want) {
			t.Errorf("it fires at %v, want %v", s.sweep.fires, want)
		}
	})
}

// However short keys live, a sweep comes once a second.
func TestSweepsOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var readings atomic.Int64
		s := New(Config{Clock: func() time.Time { readings.Add(1); return time.Now() }})
		p := gcra(t, "p", algorithms.Limit{Count: 1, Period: time.Millisecond})
		const charges = 1000
		for i := range charges {
			charge(t, s, p, strconv.Itoa(i), 1)
			time.Sleep(10 * time.Millisecond)
		}
		if n := readings.Load() - charges; n < int64(9*len(s.shards)) || n > int64(11*len(s.shards)) {
			t.Errorf("%d readings by sweeps of %d shards in 10 s", n, len(s.shards))
		}
	})
}

// However many keys have changed, a search for the nearest reset, and a sweep, do
// a batch of work under a lock.
func TestWorkIsBounded(t *testing.T) {
	const keys = 4 * batch
	state := algorithms.State{1, 2, 3}
	var tb table
	for i := range int64(keys) {
		tb.set(tb.add(id{uint64(i), 0}), state, 1000+i, 500, 0)
	}
	if _, ok := tb.nearest(499); ok {
		t.Error("a limited key may go")
	}
	if d, ok := tb.nearest(600); !ok || tb.entries[d.slot].limited > 600 || len(tb.idle) > batch {
		t.Errorf("%d keys moved, %v", len(tb.idle), ok)
	}
	for range keys / batch {
		tb.nearest(600)
	}
	if d, _ := tb.nearest(600); d.at != 1000 || len(tb.busy) > 0 {
		t.Errorf("in the end: %+v, %d keys not moved", d, len(tb.busy))
	}
	tb.check(t)

	for i := range int32(keys) {
		tb.set(i, state, 10_000+int64(i), 0, 600)
	}
	tb.nearest(600)
	mended := 0
	for _, d := range tb.idle {
		if d.at >= 10_000 {
			mended++
		}
	}
	if mended == 0 || mended > batch {
		t.Errorf("%d places mended", mended)
	}
	tb.check(t)

	// Limited again: none of them may go, however many there are.
	tb.set(0, state, math.MaxInt64, 0, 600)
	for i := range int32(keys - 1) {
		tb.set(i+1, state, 20_000, 700, 800) // found to be limited no longer
	}
	if d, ok := tb.nearest(650); !ok || d.slot != 0 {
		t.Errorf("%+v, %v", d, ok)
	}
	tb.check(t)

	s := New(Config{Clock: func() time.Time { return time.UnixMicro(30_000) }})
	s.live.Store(keys)
	s.shards[0].table = tb
	for n := keys; n > 1; {
		more := s.sweepShard(&s.shards[0])
		if freed := n - s.Len(); freed > batch || !more && s.Len() > 1 {
			t.Fatalf("%d keys freed of %d, more: %v", freed, n, more)
		}
		n = s.Len()
	}
}
