package memstore

import (
	"errors"

	"github.com/weirgo/weir/store"
)

// errNoRoom asks Take to try again with all shards locked.
var errNoRoom = errors.New("no room for a new key")

// reserve makes room for the keys that g adds. Shadow charges get what the others
// leave; where those find too little, nothing is changed. Keys of g's own that go
// make no room for it: they go when nothing can fail any more.
func (g *group) reserve(now int64, all bool) error {
	adds, shadows := int64(0), int64(0)
	for i := range g.steps {
		if g.steps[i].adds() {
			adds++
			if g.charges[i].Mode == store.Shadow {
				shadows++
			}
		}
	}
	if adds == 0 {
		return nil
	}
	live := g.s.live.Load()
	for live+adds <= g.s.max {
		if g.s.live.CompareAndSwap(live, live+adds) {
			return nil
		}
		live = g.s.live.Load()
	}
	if !all {
		return errNoRoom
	}
	// All shards are locked: nobody else adds keys or frees them.
	room := g.s.max - live
	room += g.evict(adds-shadows-room, adds-room, now)
	if room < adds-shadows {
		return ErrFull
	}
	g.drop(adds-room, now)
	g.s.live.Add(min(adds, room))
	return nil
}

// adds tells whether st makes a new key.
func (st *step) adds() bool { return st.made && st.slot == none && st.from < st.to }

// evict frees most keys, or as many as may go if that is at least least, or none,
// and tells how many. They are the nearest their reset, not limited and not g's.
func (g *group) evict(least, most, now int64) int64 {
	for i := range g.steps {
		if st := &g.steps[i]; st.slot != none {
			st.shard.takeOut(st.slot)
			defer st.shard.place(st.slot, now)
		}
	}
	for int64(len(g.victims)) < most {
		var from *shard
		var first due
		for i := range g.s.shards {
			sh := &g.s.shards[i]
			if d, ok := sh.nearest(now); ok && (from == nil || d.at < first.at) {
				from, first = sh, d
			}
		}
		if from == nil {
			break
		}
		from.takeOut(first.slot)
		g.victims = append(g.victims, victim{from, first.slot})
	}
	found := int64(len(g.victims))
	for _, v := range g.victims {
		if found < least {
			v.shard.place(v.slot, now)
		} else {
			g.s.forget(v.shard, v.slot)
		}
	}
	if found < least {
		return 0
	}
	return found
}

// drop turns the last n Shadow charges that add a key into looks.
func (g *group) drop(n, now int64) {
	for i := len(g.steps) - 1; n > 0; i-- {
		if g.charges[i].Mode == store.Shadow && g.steps[i].adds() {
			g.decide(i, now, 0)
			n--
		}
	}
}

// forget removes a key and makes its room free.
func (s *Store) forget(sh *shard, slot int32) {
	sh.remove(slot)
	s.live.Add(-1)
}
