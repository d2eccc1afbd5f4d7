package memstore

import (
	"sync"

	"github.com/weirgo/weir/algorithms"
)

// none is the slot of a key that is not kept.
const none = -1

// shard keeps a part of the keys. Its table is guarded by mu.
type shard struct {
	mu sync.Mutex
	table
	_ [8]byte // makes it 128 bytes on a 64-bit machine, so that no two share a cache line
}

// table is what a shard keeps.
type table struct {
	index   map[id]int32
	entries []entry
	unused  []int32                    // slots of entries that are free
	long    map[int32]algorithms.State // states that do not fit into an entry
	idle    heap                       // keys that are not limited, by the time they run out
	busy    heap                       // keys that are limited, by the time until which they are
}

// entry is a key. It fills one cache line and holds no pointer, so that the
// garbage collector passes over a million of them.
type entry struct {
	id      id
	words   [3]int64
	expires int64 // µs; from then on it is a key never seen
	limited int64 // µs; until then nothing can be taken
	pos     int32 // index in its heap, or none
	n       uint8 // words in use, or isLong
	inBusy  bool  // which heap that is
}

const isLong = 255

// state is the state of a key that is kept, or nil.
func (st *step) state() algorithms.State {
	if st.slot == none {
		return nil
	}
	if e := &st.shard.entries[st.slot]; e.n != isLong {
		return e.words[:e.n]
	}
	return st.shard.long[st.slot]
}

// add makes an entry for a key. The caller has reserved its place.
func (t *table) add(key id) int32 {
	if t.index == nil {
		t.index = map[id]int32{}
	}
	var slot int32
	if n := len(t.unused); n > 0 {
		slot, t.unused = t.unused[n-1], t.unused[:n-1]
	} else {
		slot = int32(len(t.entries))
		t.entries = append(t.entries, entry{})
	}
	t.entries[slot] = entry{id: key, pos: none}
	t.index[key] = slot
	return slot
}

// set keeps the state of a key.
func (t *table) set(slot int32, state algorithms.State, expires, limited, now int64) {
	e := &t.entries[slot]
	if len(state) <= len(e.words) {
		if e.n == isLong {
			delete(t.long, slot)
		}
		e.n = uint8(copy(e.words[:], state))
	} else {
		if t.long == nil {
			t.long = map[int32]algorithms.State{}
		}
		e.n = isLong
		t.long[slot] = append(t.long[slot][:0], state...)
	}
	e.expires, e.limited = expires, limited
	t.place(slot, now)
}

// lengthen lets a key live longer, and be limited longer, but not shorter. So its
// place need not be mended before it comes to the root of a heap.
func (t *table) lengthen(slot int32, expires, limited int64) {
	e := &t.entries[slot]
	e.expires, e.limited = max(e.expires, expires), max(e.limited, limited)
}

// remove forgets a key.
func (t *table) remove(slot int32) {
	e := &t.entries[slot]
	t.takeOut(slot)
	delete(t.index, e.id)
	if e.n == isLong {
		delete(t.long, slot)
	}
	t.unused = append(t.unused, slot)
}

// shrink gives memory back once most of it is unused.
func (t *table) shrink(now int64) {
	live := len(t.index)
	if len(t.entries) < 1024 || live > len(t.entries)/4 {
		return
	}
	old := *t
	*t = table{}
	for key, slot := range old.index {
		e := old.entries[slot]
		state := algorithms.State(e.words[:])
		if e.n == isLong {
			state = old.long[slot]
		} else {
			state = state[:e.n]
		}
		t.set(t.add(key), state, e.expires, e.limited, now)
	}
}
