package memstore

import (
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// broken is GCRA that panics at a look at a key it has seen.
type broken struct{ algorithms.GCRA }

func (broken) Name() string { return "broken" }

func (a broken) Decide(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	if cost == 0 && len(s) > 0 {
		panic("a bug in an algorithm")
	}
	return a.GCRA.Decide(dst, s, now, p, cost, age)
}

// panics tells whether f does. net/http recovers so.
func panics(f func()) (p bool) {
	defer func() { p = recover() != nil }()
	f()
	return
}

// A panic leaves no shard locked, and nothing of the group is made.
func TestPanicUnderLocks(t *testing.T) {
	good := gcra(t, "good", algorithms.PerMinute(3))
	bad := newPolicy(t, "bad", broken{}, algorithms.PerMinute(3))
	stuck := false
	s := New(Config{Clock: func() time.Time {
		if stuck {
			panic("a bug in a clock")
		}
		return time.Unix(1_700_000_000, 0)
	}})
	for name, f := range map[string]func(){
		"an algorithm": func() {
			// Nothing remains, so it is asked for how long.
			_, _ = takeGroup(t, s, store.Charge{Policy: good, Key: "k", Cost: 2}, store.Charge{Policy: bad, Key: "k", Cost: 3})
		},
		"the clock": func() {
			stuck = true
			charge(t, s, good, "k", 2)
		},
	} {
		stuck = false
		if !panics(f) {
			t.Errorf("%s did not panic", name)
		}
		stuck = false
		for i := range s.shards {
			if !s.shards[i].mu.TryLock() {
				t.Fatalf("%s left a shard locked", name)
			}
			s.shards[i].mu.Unlock()
		}
		s.check(t)
		if r := charge(t, s, good, "k", 0); r.Remaining != 3 || s.Len() != 0 {
			t.Errorf("%s: half a group is made: %+v, %d keys", name, r, s.Len())
		}
	}
}
