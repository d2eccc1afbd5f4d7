package memstore

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

func forgetting(p *algorithms.Policy, key string) store.Charge {
	return store.Charge{Policy: p, Key: key, Mode: store.Forget}
}

func mustForget(t *testing.T, s *Store, p *algorithms.Policy, keys ...string) {
	t.Helper()
	var charges []store.Charge
	for _, key := range keys {
		charges = append(charges, forgetting(p, key))
	}
	if _, err := takeGroup(t, s, charges...); err != nil {
		t.Fatal(err)
	}
}

// A key that is forgotten is in no heap and no table, were it limited or its state
// long, and its entry is used again.
func TestForgottenKeysAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no timer sweeps meanwhile
		s := New(Config{})
		for _, a := range []algorithms.Algorithm{algorithms.GCRA{}, stretching{}, algorithms.SlidingLog{}, algorithms.Ban{Strikes: 20, Within: time.Hour, For: time.Hour}} {
			p, q := newPolicy(t, "p", a, algorithms.PerHour(20)), newPolicy(t, "q", a, algorithms.PerHour(20))
			for _, cost := range []int64{1, 2, 20} {
				for i := range 50 {
					charge(t, s, p, strconv.Itoa(i), cost)
					charge(t, s, q, strconv.Itoa(i), cost)
				}
				others := map[id]entry{}
				for i := range 50 {
					id := s.hash(q.ID(), strconv.Itoa(i))
					others[id] = s.kept()[id]
				}
				for i := 0; i < 50; i += 2 {
					mustForget(t, s, p, strconv.Itoa(i), strconv.Itoa(i+1), "never seen")
					if s.check(t); s.Len() != 98-i {
						t.Fatalf("%s, cost %d: %d keys kept, want %d", a.Name(), cost, s.Len(), 98-i)
					}
				}
				for id, e := range s.kept() {
					if e.pos = others[id].pos; e != others[id] { // its place may be another
						t.Errorf("%s, cost %d: %+v became %+v", a.Name(), cost, others[id], e)
					}
				}
				for i := range 50 {
					mustForget(t, s, q, strconv.Itoa(i))
				}
				if s.check(t); s.Len() != 0 {
					t.Errorf("%s, cost %d: %d keys kept", a.Name(), cost, s.Len())
				}
			}
		}
		entries := 0
		for i := range s.shards {
			entries += len(s.shards[i].entries)
		}
		if most := 100 * len(s.shards); entries > most {
			t.Errorf("%d entries for 100 keys at a time", entries)
		}
	})
}

// A refused group forgets nothing: the entry stays, limited as long and no
// shorter, and its place is not free for others.
func TestRefusedGroupForgetsNothing(t *testing.T) {
	s := New(Config{MaxKeys: 2, Clock: storetest.NewClock().Now})
	p := gcra(t, "p", algorithms.PerMinute(3))
	charge(t, s, p, "limited", 3)
	charge(t, s, p, "full", 3)
	before := s.kept()
	rs, err := takeGroup(t, s, forgetting(p, "limited"), store.Charge{Policy: p, Key: "full", Cost: 1}, forgetting(p, "never seen"))
	if err != nil || rs[0].Limited || rs[0].Remaining != 0 || rs[0].RetryAfter != 0 || rs[0].ResetAfter != time.Minute || rs[2].Remaining != 3 {
		t.Errorf("%+v, %v", rs, err)
	}
	s.check(t)
	for id, e := range s.kept() {
		if e != before[id] {
			t.Errorf("%+v became %+v", before[id], e)
		}
	}
	if _, err := takeGroup(t, s, store.Charge{Policy: p, Key: "new", Cost: 1}); !errors.Is(err, ErrFull) {
		t.Errorf("a key that is limited went for another: %v", err)
	}
}

// What is forgotten makes room, for the next group: in its own it goes last.
func TestForgottenKeysMakeRoom(t *testing.T) {
	s := New(Config{MaxKeys: 10, Clock: storetest.NewClock().Now})
	p := gcra(t, "p", algorithms.PerMinute(1))
	for i := range 10 {
		charge(t, s, p, strconv.Itoa(i), 1)
	}
	taking := func(key string) store.Charge { return store.Charge{Policy: p, Key: key, Cost: 1} }
	if _, err := takeGroup(t, s, forgetting(p, "3"), taking("new")); !errors.Is(err, ErrFull) || s.Len() != 10 {
		t.Errorf("%v, %d keys", err, s.Len())
	}
	if r := charge(t, s, p, "3", 0); !r.Limited {
		t.Errorf("forgotten by a group that found no room: %+v", r)
	}
	mustForget(t, s, p, "3", "7")
	for i, key := range []string{"new", "newer", "one too many"} {
		_, err := takeGroup(t, s, taking(key))
		if s.check(t); errors.Is(err, ErrFull) != (i == 2) || s.Len() != min(9+i, 10) {
			t.Errorf("%s: %v, %d keys", key, err, s.Len())
		}
	}
	for i := range 10 {
		if r := charge(t, s, p, strconv.Itoa(i), 0); r.Limited == (i == 3 || i == 7) {
			t.Errorf("%d: %+v", i, r)
		}
	}
	// One that may go goes before what the group forgets.
	mustForget(t, s, p, "0")
	wide := gcra(t, "wide", algorithms.PerMinute(9))
	charge(t, s, wide, "goes", 1)
	rs, err := takeGroup(t, s, forgetting(p, "1"), taking("0"))
	if s.check(t); err != nil || rs[0].Remaining != 1 || rs[1].Remaining != 0 || s.Len() != 9 {
		t.Errorf("%+v, %v, %d keys", rs, err, s.Len())
	}
}

// When all is forgotten no timer runs, once it has fired, and the next key sets it.
func TestForgottenKeysNeedNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		p := gcra(t, "p", algorithms.PerMinute(6))
		for range 3 {
			charge(t, s, p, "k", 6)
			mustForget(t, s, p, "k")
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if at := s.sweep.at.Load(); at != 0 {
				t.Errorf("nothing is kept, and the timer is set for %d", at)
			}
			charge(t, s, p, "k", 1)
			time.Sleep(12 * time.Second)
			synctest.Wait()
			if s.check(t); s.Len() != 0 {
				t.Errorf("%d keys kept after their end", s.Len())
			}
		}
	})
}

// Of a flood that is forgotten the memory comes back at the next sweep.
func TestForgottenKeysGiveMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		many := 3000 * len(s.shards)
		policies := []*algorithms.Policy{gcra(t, "p", algorithms.PerHour(3)), newPolicy(t, "p", stretching{}, algorithms.PerHour(3))}
		for _, p := range policies {
			for i := range many / 2 {
				charge(t, s, p, strconv.Itoa(i), 2)
			}
		}
		for _, p := range policies {
			for i := range many / 2 {
				mustForget(t, s, p, strconv.Itoa(i))
			}
		}
		s.check(t)
		s.sweepAll()
		s.check(t)
		for i := range s.shards {
			if sh := &s.shards[i]; len(sh.entries) != 0 || len(sh.unused) != 0 || cap(sh.idle)+cap(sh.busy) != 0 || len(sh.long) != 0 {
				t.Errorf("shard %d: %d entries", i, len(sh.entries))
			}
		}
	})
}
