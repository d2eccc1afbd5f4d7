package memstore

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// What goes, and when, is compared with a search through all keys.
func TestEvictsAsASearchWould(t *testing.T) {
	seed := rand.Uint64()
	for _, room := range []int{1, 2, 3, 20, 200} {
		synctest.Test(t, func(t *testing.T) { // in which no timer sweeps meanwhile
			o := &oracle{rnd: rand.New(rand.NewPCG(seed, uint64(room))), clock: storetest.NewClock(), room: room}
			o.s = New(Config{MaxKeys: room, Clock: o.clock.Now})
			for i, l := range []algorithms.Limit{algorithms.PerSecond(2), algorithms.PerMinute(3), algorithms.PerHour(10), {Count: 1, Period: 10 * time.Second}} {
				for _, a := range []algorithms.Algorithm{algorithms.GCRA{}, stretching{}} {
					o.policies = append(o.policies, newPolicy(t, "p"+strconv.Itoa(i), a, l))
				}
			}
			for step := range 2000 {
				if o.step(t); t.Failed() {
					t.Fatalf("seed %d, room %d, step %d", seed, room, step)
				}
			}
		})
	}
}

type oracle struct {
	rnd      *rand.Rand
	clock    *storetest.Clock
	s        *Store
	room     int
	policies []*algorithms.Policy
}

// step makes one charge and compares what became of the keys.
func (o *oracle) step(t *testing.T) {
	o.clock.Advance(time.Duration(o.rnd.Int64N((20*time.Second).Microseconds()/int64(o.room)+1)) * time.Microsecond)
	now := o.clock.Now().UnixMicro()
	p, key := o.policies[o.rnd.IntN(len(o.policies))], strconv.Itoa(o.rnd.IntN(o.room+2))
	cost := []int64{1, 1, 1, 2, 3, 0, -1, -2}[o.rnd.IntN(8)]
	me := o.s.hash(p.ID(), key)

	before := o.s.kept()
	if before[me].expires <= now {
		delete(before, me) // as a charge does with its own
	}
	c := store.Charge{Policy: p, Key: key, Cost: cost}
	if o.rnd.IntN(12) == 0 {
		c.Cost, c.Mode, cost = 0, store.Forget, 0
	}
	_, err := takeGroup(t, o.s, c)
	after := o.s.kept()

	nearest, gone, victim := int64(math.MaxInt64), 0, int64(0)
	for k, e := range before {
		if k != me && e.limited <= now {
			nearest = min(nearest, e.expires)
		}
		if _, ok := after[k]; !ok && k != me && e.expires > now {
			gone, victim = gone+1, e.expires
		}
	}
	_, known := before[me]
	needs := !known && cost > 0 && cost <= p.Limit().Count && len(before) == o.room
	switch {
	case needs && nearest == math.MaxInt64:
		if !errors.Is(err, ErrFull) || gone > 0 {
			t.Errorf("all are limited: %v, and %d keys went", err, gone)
		}
	case err != nil:
		t.Error(err)
	case needs && nearest > now && (gone != 1 || victim != nearest):
		t.Errorf("%d keys went, at %d; the nearest was at %d", gone, victim, nearest)
	case (!needs || nearest <= now) && gone > 0:
		t.Errorf("%d keys went without need", gone)
	}
	if e, ok := after[me]; ok {
		if c.Mode == store.Forget {
			t.Errorf("%+v is kept, and should be forgotten", e)
		}
		_, look := p.Decide(nil, e.words[:], now, 0, 0) // where the state is long, too soon to tell
		if e.n != isLong && (look.Limited != (e.limited > now) || look.Limited && e.limited < now+look.RetryAfter.Microseconds()) {
			t.Errorf("%+v, but limited until %d, now %d", look, e.limited, now)
		}
	}
	if o.rnd.IntN(40) == 0 {
		o.s.sweepAll()
		swept := o.s.kept()
		for k, e := range after {
			if _, there := swept[k]; there != (e.expires > now) {
				t.Errorf("swept at %d: %+v is kept: %v", now, e, there)
			}
		}
	}
	o.s.check(t)
	entries := 0
	for i := range o.s.shards {
		entries += len(o.s.shards[i].entries)
	}
	if entries > o.room*len(o.s.shards) {
		t.Errorf("%d entries for %d keys", entries, o.room)
	}
}

// A group that finds no room pushes out nothing, and leaves its own keys where
// they are.
func TestNoRoomForAGroup(t *testing.T) {
	s := New(Config{MaxKeys: 3, Clock: storetest.NewClock().Now})
	p := gcra(t, "p", algorithms.PerMinute(3))
	charge(t, s, p, "a", 3)
	charge(t, s, p, "b", 3)
	charge(t, s, p, "c", 2)
	to := func(keys ...string) (charges []store.Charge) {
		for _, k := range keys {
			charges = append(charges, store.Charge{Policy: p, Key: k, Cost: 1})
		}
		return charges
	}
	for _, keys := range [][]string{{"new", "newer"}, {"c", "new"}, {"1", "2", "3", "4"}} {
		if _, err := takeGroup(t, s, to(keys...)...); !errors.Is(err, ErrFull) {
			t.Errorf("%v: %v", keys, err)
		}
		s.check(t)
		if r := charge(t, s, p, "c", 0); r.Remaining != 1 {
			t.Errorf("after %v: %+v", keys, r)
		}
	}
	charge(t, s, p, "a", -2)
	if _, err := takeGroup(t, s, to("new", "newer")...); err != nil {
		t.Errorf("two keys may go: %v", err)
	}
	s.check(t)
	if r := charge(t, s, p, "b", 0); !r.Limited {
		t.Errorf("a limited key went: %+v", r)
	}
}

// A group may fill the store, and what makes no key needs no room.
func TestRoomForAGroup(t *testing.T) {
	s := New(Config{MaxKeys: 2})
	p := gcra(t, "p", algorithms.PerMinute(3))
	charge(t, s, p, "a", -1)
	s.check(t)
	if _, err := takeGroup(t, s, store.Charge{Policy: p, Key: "x", Cost: 3}, store.Charge{Policy: p, Key: "y", Cost: 3}); err != nil {
		t.Error(err)
	}
	for _, cost := range []int64{0, -1, 4} {
		charge(t, s, p, "z", cost)
	}
	s.check(t)
}

// A Shadow charge that finds no room is a look, and fails nothing.
func TestShadowWithoutRoom(t *testing.T) {
	clock := storetest.NewClock()
	s := New(Config{MaxKeys: 3, Clock: clock.Now})
	p, try := gcra(t, "p", algorithms.PerMinute(1)), gcra(t, "try", algorithms.PerMinute(9))
	shadow := func(key string) store.Charge {
		return store.Charge{Policy: try, Key: key, Cost: 1, Mode: store.Shadow}
	}
	enforce := func(key string) store.Charge { return store.Charge{Policy: p, Key: key, Cost: 1} }

	results, err := takeGroup(t, s, shadow("1"), shadow("2"), enforce("1"), shadow("3"))
	if err != nil || s.Len() != 3 {
		t.Errorf("%d keys, %v", s.Len(), err)
	}
	for i, left := range []int64{8, 8, 0, 9} {
		if r := results[i]; r.Remaining != left || r.Limited {
			t.Errorf("charge %d: %+v", i, r)
		}
	}
	// Those that may go make room for the others, and then for it.
	for i, shadows := range []bool{true, false} {
		key := strconv.Itoa(4 + i)
		_, err := takeGroup(t, s, shadow(key), enforce(key))
		if err != nil || s.entryOf(p, key).n == 0 || (s.entryOf(try, key).n != 0) != shadows {
			t.Errorf("group %s: %v", key, err)
		}
	}
	results, err = takeGroup(t, s, shadow("6"))
	if want := (algorithms.Result{Limit: 9, Remaining: 9}); err != nil || results[0] != want {
		t.Errorf("all keys are limited: %+v, %v", results[0], err)
	}
	if _, err := takeGroup(t, s, shadow("6"), enforce("6")); !errors.Is(err, ErrFull) {
		t.Errorf("no room for the other: %v", err)
	}
	s.check(t)
	clock.Advance(time.Minute)
	if results, err = takeGroup(t, s, shadow("6")); err != nil || results[0].Remaining != 8 {
		t.Errorf("with room: %+v, %v", results[0], err)
	}
}

// A key that is limited longer under another limit stays so long, and lives so
// long, under whichever limit it is seen next.
func TestLimitChangeProtects(t *testing.T) {
	clock := storetest.NewClock()
	s := New(Config{MaxKeys: 2, Clock: clock.Now})
	fast, slow, other := gcra(t, "p", algorithms.PerMinute(2)), gcra(t, "p", algorithms.PerHour(2)), gcra(t, "other", algorithms.PerDay(2))
	now := clock.Now().UnixMicro()
	for _, c := range []struct {
		p                *algorithms.Policy
		cost             int64
		limited, expires time.Duration
	}{
		{fast, 2, 30 * time.Second, time.Minute},
		{slow, 0, 30 * time.Minute, time.Hour},
		{fast, 0, 30 * time.Minute, time.Hour},
		{fast, 1, 30 * time.Minute, time.Hour},
	} {
		charge(t, s, c.p, "k", c.cost)
		if e := s.entryOf(c.p, "k"); e.limited != now+c.limited.Microseconds() || e.expires != now+c.expires.Microseconds() {
			t.Errorf("limited for %d µs, lives for %d µs; want %v, %v", e.limited-now, e.expires-now, c.limited, c.expires)
		}
	}
	charge(t, s, other, "a", 1)
	clock.Advance(2 * time.Minute)
	charge(t, s, other, "b", 1) // in the place of a, which resets later but is not limited
	if r := charge(t, s, slow, "k", 1); !r.Limited {
		t.Errorf("a limited key was forgotten: %+v", r)
	}
	s.check(t)
}

// A key that is limited longer than when it was charged does not hide one that
// may go.
func TestLongerLimitHidesNothing(t *testing.T) {
	var tb table
	a, b := tb.add(id{1, 0}), tb.add(id{2, 0})
	tb.set(a, algorithms.State{1}, 100, 30, 0)
	tb.lengthen(a, 200, 150)
	tb.set(b, algorithms.State{1}, 120, 60, 0)
	if d, ok := tb.nearest(61); !ok || d != (due{120, b}) {
		t.Errorf("%+v, %v; want key %d", d, ok, b)
	}
	tb.check(t)
}
