package memstore

import (
	"context"
	"math/bits"
	"testing"
	"unsafe"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// check holds the tables and heaps to what they promise each other.
func (s *Store) check(t *testing.T) {
	t.Helper()
	s.lock(s.all())
	defer s.unlock(s.all())
	kept := 0
	for i := range s.shards {
		kept += s.shards[i].check(t)
	}
	if int64(kept) != s.live.Load() || int64(kept) > s.max {
		t.Errorf("%d keys counted, %d kept of %d", s.live.Load(), kept, s.max)
	}
}

func (tb *table) check(t *testing.T) int {
	t.Helper()
	if len(tb.index)+len(tb.unused) != len(tb.entries) || len(tb.idle)+len(tb.busy) != len(tb.index) {
		t.Errorf("%d entries: %d keys, %d unused; %d idle, %d busy", len(tb.entries), len(tb.index), len(tb.unused), len(tb.idle), len(tb.busy))
	}
	long := 0
	for id, slot := range tb.index {
		e := &tb.entries[slot]
		if h, at := tb.heapOf(e); e.id != id || e.n == 0 || e.pos == none || (*h)[e.pos].slot != slot || (*h)[e.pos].at > at {
			t.Errorf("key %v is kept as %+v", id, e)
		}
		if e.n == isLong {
			long++
		}
	}
	if long != len(tb.long) {
		t.Errorf("%d long states for %d keys", len(tb.long), long)
	}
	for _, h := range []heap{tb.idle, tb.busy} {
		for i := 1; i < len(h); i++ {
			if h[(i-1)/2].at > h[i].at {
				t.Errorf("a heap is out of order at %d", i)
			}
		}
	}
	return len(tb.index)
}

// kept is what is kept of each key.
func (s *Store) kept() map[id]entry {
	all := map[id]entry{}
	for i := range s.shards {
		for k, slot := range s.shards[i].index {
			all[k] = s.shards[i].entries[slot]
		}
	}
	return all
}

// entryOf is what is kept of a key, the zero entry if nothing is.
func (s *Store) entryOf(p *algorithms.Policy, key string) entry {
	return s.kept()[s.hash(p.ID(), key)]
}

func newPolicy(t *testing.T, name string, a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func gcra(t *testing.T, name string, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	return newPolicy(t, name, algorithms.GCRA{}, l)
}

func charge(t *testing.T, s *Store, p *algorithms.Policy, key string, cost int64) algorithms.Result {
	t.Helper()
	r, err := store.Take(context.Background(), s, p, key, cost)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return r
}

func takeGroup(t *testing.T, s *Store, charges ...store.Charge) ([]algorithms.Result, error) {
	t.Helper()
	results := make([]algorithms.Result, len(charges))
	err := s.Take(context.Background(), charges, results)
	return results, err
}

// stretching is GCRA whose state has two words more after a cost of 2: it does
// not fit into an entry then, and does again after another cost.
type stretching struct{ algorithms.GCRA }

func (stretching) Name() string { return "stretching" }

func (a stretching) Decide(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	next, r := a.GCRA.Decide(dst, s[:min(len(s), 3)], now, p, cost, age)
	if len(next) > len(dst) && cost == 2 {
		next = append(next, 11, 12)
	}
	return next, r
}

// A state that gets shorter leaves nothing behind.
func TestShorterState(t *testing.T) {
	s := New(Config{})
	p := newPolicy(t, "p", stretching{}, algorithms.PerHour(20))
	for _, cost := range []int64{2, 1, 2, 2, 3} {
		charge(t, s, p, "k", cost)
		s.check(t)
	}
	if e := s.entryOf(p, "k"); e.n != 3 {
		t.Errorf("%+v", e)
	}
}

// Two shards are not on one cache line, and an entry fills one.
func TestSizes(t *testing.T) {
	const cacheLine = 64
	if n := unsafe.Sizeof(shard{}); bits.UintSize == 64 && n != 2*cacheLine {
		t.Errorf("a shard has %d bytes", n)
	}
	if n := unsafe.Sizeof(entry{}); n > cacheLine {
		t.Errorf("an entry has %d bytes", n)
	}
}

// Both halves of an id tell keys and policies apart, each in its own way.
func TestHash(t *testing.T) {
	s := New(Config{})
	one, key, policy := s.hash("p", "k"), s.hash("p", "l"), s.hash("q", "k")
	if one.a == key.a || one.b == key.b || one.a == policy.a || one.b == policy.b {
		t.Errorf("%x, another key %x, another policy %x", one, key, policy)
	}
	if one.a^key.a == one.b^key.b || one.a^policy.a == one.b^policy.b {
		t.Errorf("the halves differ alike: %x, another key %x, another policy %x", one, key, policy)
	}
}

// sharing is GCRA that finds out whether it is given memory twice.
type sharing struct {
	algorithms.GCRA
	t *testing.T
}

func (sharing) Name() string { return "sharing" }

func (a sharing) Decide(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	all := dst[:cap(dst)]
	for i := range all {
		if len(s) > 0 && &all[i] == &s[0] {
			a.t.Error("dst shares memory with s")
		}
	}
	return a.GCRA.Decide(dst, s, now, p, cost, age)
}

// dst and s are apart, as algorithms are promised.
func TestStatesAreApart(t *testing.T) {
	s := New(Config{})
	p := newPolicy(t, "p", sharing{t: t}, algorithms.PerHour(3))
	for _, cost := range []int64{3, 1, -1, 2, -3} {
		charge(t, s, p, "k", cost)
		if _, err := takeGroup(t, s, store.Charge{Policy: p, Key: "k", Cost: 1}, store.Charge{Policy: p, Key: "l", Cost: 3}, store.Charge{Policy: p, Key: "m", Cost: 3, Mode: store.Strike}); err != nil {
			t.Fatal(err)
		}
	}
}
