package redisstore_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// Logs so long that what has left does not all go at once: the sorted set keeps
// the same units as the list of the Go model does.
func TestLongLogs(t *testing.T) {
	o := storetest.Options{
		Algorithms: []algorithms.Algorithm{algorithms.SlidingLog{}},
		Limits: []algorithms.Limit{
			algorithms.PerSecond(150), algorithms.PerSecond(300), {Count: 1000, Period: 3 * time.Second}, {Count: 10_000, Period: 20 * time.Second},
		},
	}
	if testing.Short() {
		o.Steps = 200
	}
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, openMini, o)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, openReal(t), o)
	})
}

// The clock swings to and fro around the newest unit, and the set answers as
// Decide does of its list.
func TestLogUnderASwingingClock(t *testing.T) {
	for _, count := range []int64{6, 300} {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		clock := storetest.NewClock()
		s := openMini(t, clock)
		p, err := algorithms.NewPolicy("p", algorithms.SlidingLog{}, algorithms.PerSecond(count))
		if err != nil {
			t.Fatal(err)
		}
		var state algorithms.State
		for step := range 1500 {
			if n := len(state); n > 0 { // at times the moment of a unit, and never after the key's end
				at := state[n-1] + rnd.Int64N(1_998_000) - 1_000_000
				if i := rnd.IntN(2 * n); i < n && state[i] > at {
					at = state[i]
				}
				clock.Set(time.UnixMicro(at))
			}
			costs := []int64{1, 1, 1, 0, 1 + rnd.Int64N(count), count, -1, -rnd.Int64N(count), -count}
			c := store.Charge{Policy: p, Key: "k", Cost: costs[rnd.IntN(len(costs))]}
			if c.Cost < 0 {
				c.Age = time.Duration(rnd.Int64N(1_100_000)) * time.Microsecond
			}
			got, now := make([]algorithms.Result, 1), clock.Now().UnixMicro()
			if err := s.Take(t.Context(), []store.Charge{c}, got); err != nil {
				t.Fatal(err)
			}
			next, want := p.Decide(nil, state, now, c.Cost, c.AgeMicros())
			if got[0] != want {
				t.Fatalf("seed %d, step %d: cost %d, age %v at %d of %v:\ngot  %+v\nwant %+v", seed, step, c.Cost, c.Age, now, state, got[0], want)
			}
			state = next
		}
	}
}

// logServer is a server with a log of so many a minute.
func logServer(t *testing.T, count int64) (*server, *algorithms.Policy) {
	t.Helper()
	clock := storetest.NewClock()
	s := newServer(t, clock, redistest.StartAt(t, clock).Addr)
	p, err := algorithms.NewPolicy("p", algorithms.SlidingLog{}, algorithms.PerMinute(count))
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

const logKey = redisstore.DefaultPrefix + "{k}:p:sliding-log"

// The set has a member for each unit that was let in, also of one moment, and
// none for what was refused. It lives as long as the newest unit.
func TestLogIsASortedSet(t *testing.T) {
	s, p := logServer(t, 5)
	card := func() any { t.Helper(); return s.do("ZCARD", logKey) }
	for range 10 {
		mustTake(t, s.store, p, "k", 1)
	}
	if typ, n := s.do("TYPE", logKey), card(); typ != "zset" || n != int64(5) {
		t.Errorf("%v of %v units", typ, n)
	}
	mustTake(t, s.store, p, "k", -2)
	mustTake(t, s.store, p, "k", 2)
	mustTake(t, s.store, p, "k", -1)
	mustTake(t, s.store, p, "k", 1)
	if r := mustTake(t, s.store, p, "k", 1); !r.Limited || card() != int64(5) {
		t.Errorf("given back and taken again in one moment: %+v, %v units", r, card())
	}
	s.clock.Advance(20 * time.Second)
	mustTake(t, s.store, p, "k", -3) // of the oldest that are not older: none
	if life := s.life(logKey); life != 40*time.Second || card() != int64(5) {
		t.Errorf("%v units live for %v", card(), life)
	}
	s.clock.Advance(40 * time.Second)
	mustTake(t, s.store, p, "k", 3)
	if life := s.life(logKey); life != time.Minute || card() != int64(3) {
		t.Errorf("%v units live for %v", card(), life)
	}
	mustTake(t, s.store, p, "k", -3)
	if n := s.do("EXISTS", logKey); n != int64(0) {
		t.Error("an empty log is kept")
	}
}

// What has left goes a few units at a time, and never more is kept than the
// limit allows.
func TestLogIsTrimmedBitByBit(t *testing.T) {
	const count = 5000
	s, p := logServer(t, count)
	mustTake(t, s.store, p, "k", count-1)
	s.clock.Advance(time.Second)
	mustTake(t, s.store, p, "k", 1)
	s.clock.Advance(59*time.Second + 500*time.Millisecond)
	kept := int64(count)
	for i := range 100 {
		mustTake(t, s.store, p, "k", 1)
		n := s.do("ZCARD", logKey).(int64)
		if n > count || kept-n > 64 || i < 70 && n >= kept {
			t.Fatalf("charge %d: %d units, %d before", i+1, n, kept)
		}
		kept = n
	}
	if kept != 101 {
		t.Errorf("%d units are left", kept)
	}
}

// Cost is taken by the unit, and a whole log at once.
func TestLogTakesItsWhole(t *testing.T) {
	s, p := logServer(t, algorithms.MaxLog)
	if r := mustTake(t, s.store, p, "k", algorithms.MaxLog); r.Limited || r.Remaining != 0 || s.do("ZCARD", logKey) != int64(algorithms.MaxLog) {
		t.Errorf("%+v", r)
	}
	if r := mustTake(t, s.store, p, "k", 1); !r.Limited || r.RetryAfter != time.Minute {
		t.Errorf("%+v", r)
	}
	if r := mustTake(t, s.store, p, "k", -algorithms.MaxLog); r.Remaining != algorithms.MaxLog || s.do("EXISTS", logKey) != int64(0) {
		t.Errorf("%+v", r)
	}
}
