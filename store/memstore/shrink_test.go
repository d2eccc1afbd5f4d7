package memstore

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store/storetest"
)

// Keys that stay while most go keep their state, life time and limit.
func TestShrinkKeepsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no timer sweeps meanwhile
		clock := storetest.NewClock()
		s := New(Config{MaxKeys: 200_000, Clock: clock.Now})
		long := []*algorithms.Policy{gcra(t, "long", algorithms.PerDay(3)), newPolicy(t, "long", stretching{}, algorithms.PerDay(3))}
		for _, p := range long {
			for i := range 300 {
				charge(t, s, p, strconv.Itoa(i), int64(2+i%2))
			}
		}
		short := gcra(t, "short", algorithms.PerSecond(1))
		many := 3000 * len(s.shards)
		for i := range many {
			charge(t, s, short, strconv.Itoa(i), 1)
		}
		before := s.kept()
		clock.Advance(2 * time.Second)
		s.sweepAll()
		s.check(t)
		entries := 0
		for i := range s.shards {
			entries += len(s.shards[i].entries)
		}
		if s.Len() != 600 || entries > many/4 {
			t.Errorf("%d keys, %d entries", s.Len(), entries)
		}
		for k, e := range s.kept() {
			b := before[k]
			if e.expires != b.expires || e.limited != b.limited || e.words != b.words || e.n != b.n {
				t.Fatalf("%+v, before %+v", e, b)
			}
		}
		for _, p := range long {
			for i := range 300 {
				if r := charge(t, s, p, strconv.Itoa(i), 0); r.Remaining != int64(1-i%2) {
					t.Fatalf("%d: %+v", i, r)
				}
			}
		}
	})
}

// A small table is left as it is.
func TestSmallTableStays(t *testing.T) {
	var tb table
	for i := range 1023 {
		tb.set(tb.add(id{uint64(i), 0}), algorithms.State{1}, 10, 0, 0)
	}
	for i := range 1023 {
		tb.remove(int32(i))
	}
	if tb.shrink(0); len(tb.entries) != 1023 {
		t.Errorf("%d entries", len(tb.entries))
	}
}
