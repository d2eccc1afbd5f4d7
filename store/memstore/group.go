package memstore

import (
	"errors"
	"sync"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// errNoRoom asks Take to try again with all shards locked.
var errNoRoom = errors.New("no room for a new key")

// group is one Take at work. Groups are pooled.
type group struct {
	s       *Store
	charges []store.Charge
	results []algorithms.Result
	shards  uint64 // the set of shards that the keys are in
	steps   []step
	states  algorithms.State // the next states of all charges, one after the other
}

// step is what is known of one charge.
type step struct {
	id       id
	shard    *shard
	slot     int32 // of the live key, or none
	from, to int   // its next state is states[from:to]
	made     bool
}

var groups = sync.Pool{New: func() any { return new(group) }}

func (s *Store) newGroup(charges []store.Charge, results []algorithms.Result) *group {
	g := groups.Get().(*group)
	g.s, g.charges, g.results = s, charges, results
	for i := range charges {
		id := s.hash(charges[i].Policy.ID(), charges[i].Key)
		n := id.a & uint64(len(s.shards)-1)
		g.shards |= 1 << n
		g.steps = append(g.steps, step{id: id, shard: &s.shards[n]})
	}
	return g
}

// free gives g back, holding on to nothing but its room.
func (g *group) free() {
	clear(g.steps)
	*g = group{steps: g.steps[:0], states: g.states[:0]}
	groups.Put(g)
}

// take decides and writes under the locks of g's shards, or of all.
func (g *group) take(now int64, all bool) error {
	g.states = g.states[:0]
	refusals, refuser := 0, 0
	for i := range g.steps {
		g.find(i, now)
		cost := g.charges[i].Cost
		if g.charges[i].Mode == store.Strike {
			cost = 0
		}
		g.decide(i, now, cost)
		if g.results[i].Limited && g.charges[i].Mode != store.Shadow {
			refusals, refuser = refusals+1, i
		}
	}
	if refusals > 0 {
		g.refuse(now, refusals, refuser)
	}
	if err := g.reserve(now, all); err != nil {
		return err
	}
	for i := range g.steps {
		g.write(i, now)
	}
	return nil
}

// find looks up the key of charge i. One that has run out is a key never seen.
func (g *group) find(i int, now int64) {
	st := &g.steps[i]
	st.slot = none
	if slot, ok := st.shard.index[st.id]; !ok {
		return
	} else if st.shard.entries[slot].expires > now {
		st.slot = slot
	} else {
		g.forget(st.shard, slot)
	}
}

func (g *group) forget(sh *shard, slot int32) {
	sh.remove(slot)
	g.s.live.Add(-1)
}

// decide asks the policy of charge i and keeps the next state.
func (g *group) decide(i int, now, cost int64) {
	c, st := &g.charges[i], &g.steps[i]
	st.from = len(g.states)
	g.states, g.results[i] = c.Policy.Decide(g.states, st.state(), now, cost, c.AgeMicros())
	st.to = len(g.states)
	st.made = cost != 0 && !g.results[i].Limited
}

// refuse turns what was decided into the answers of a refused group: only Strike
// charges are made, those that did not refuse alone.
func (g *group) refuse(now int64, refusals, refuser int) {
	for i := range g.steps {
		r := &g.results[i]
		switch {
		case g.charges[i].Mode == store.Strike:
			if refusals > 1 || refuser != i {
				if cost := min(g.charges[i].Cost, r.Remaining); cost > 0 {
					g.decide(i, now, cost)
				}
			}
		case g.steps[i].made:
			g.decide(i, now, 0)
			r.Limited, r.RetryAfter = false, 0
		}
	}
}

// reserve makes room for the keys that g adds.
func (g *group) reserve(now int64, all bool) error {
	adds := int64(0)
	for i := range g.steps {
		if st := &g.steps[i]; st.made && st.slot == none && st.from < st.to {
			adds++
		}
	}
	if adds > g.s.max {
		return ErrFull
	}
	for adds > 0 {
		live := g.s.live.Load()
		if live+adds <= g.s.max {
			if g.s.live.CompareAndSwap(live, live+adds) {
				return nil
			}
			continue
		}
		if !all {
			return errNoRoom
		}
		if !g.evict(now) {
			return ErrFull
		}
	}
	return nil
}

// evict frees the key nearest its reset that is not limited and not g's own.
// All shards are locked.
func (g *group) evict(now int64) bool {
	for i := range g.steps {
		if st := &g.steps[i]; st.slot != none {
			st.shard.takeOut(st.slot)
			defer st.shard.place(st.slot, now)
		}
	}
	var from *shard
	var first due
	for i := range g.s.shards {
		sh := &g.s.shards[i]
		if d, ok := sh.nearest(now); ok && (from == nil || d.at < first.at) {
			from, first = sh, d
		}
	}
	if from == nil {
		return false
	}
	g.forget(from, first.slot)
	return true
}

// write keeps what charge i has come to.
func (g *group) write(i int, now int64) {
	st, r := &g.steps[i], &g.results[i]
	if st.slot == none && !st.made {
		return
	}
	expires := now + r.ResetAfter.Microseconds()
	limited := int64(0) // until when
	if r.Remaining == 0 {
		limited = now + g.untilOne(i, now)
	}
	switch {
	case !st.made:
		st.shard.lengthen(st.slot, expires, limited, now)
	case st.from < st.to:
		if st.slot == none {
			st.slot = st.shard.add(st.id)
		}
		st.shard.set(st.slot, g.states[st.from:st.to], expires, limited, now)
		g.s.wake(expires, now)
	case st.slot != none:
		g.forget(st.shard, st.slot)
	}
}

// untilOne is how many µs pass until one unit can be taken where nothing
// remains. For a charge of 1 that is its own RetryAfter.
func (g *group) untilOne(i int, now int64) int64 {
	st, c := &g.steps[i], &g.charges[i]
	if c.Cost == 1 && c.Mode != store.Strike {
		return g.results[i].RetryAfter.Microseconds()
	}
	state := st.state()
	if st.made {
		state = g.states[st.from:st.to]
	}
	var look algorithms.Result
	g.states, look = c.Policy.Decide(g.states, state, now, 0, 0)
	return look.RetryAfter.Microseconds()
}
