package memstore

import (
	"sync"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// group is one Take at work. Groups are pooled.
type group struct {
	s       *Store
	charges []store.Charge
	results []algorithms.Result
	set     uint64 // of shards that the keys are in
	steps   []step
	states  algorithms.State // the next states of all charges, one after the other
	scratch algorithms.State // room for a state that is not kept
	victims []victim         // keys that may go for new ones
}

// step is what is known of one charge.
type step struct {
	id       id
	shard    *shard
	slot     int32 // of the live key, or none
	from, to int   // its next state is states[from:to]
	made     bool
	expires  int64 // what it comes to: see entry
	limited  int64
}

// victim is a key that another takes the place of.
type victim struct {
	shard *shard
	slot  int32
}

var groups = sync.Pool{New: func() any { return new(group) }}

func (s *Store) newGroup(charges []store.Charge, results []algorithms.Result) *group {
	g := groups.Get().(*group)
	g.s, g.charges, g.results = s, charges, results
	for i := range charges {
		id := s.hash(charges[i].Policy.ID(), charges[i].Key)
		n := id.a & uint64(len(s.shards)-1)
		g.set |= 1 << n
		g.steps = append(g.steps, step{id: id, shard: &s.shards[n]})
	}
	return g
}

// free gives g back, holding on to nothing but its room.
func (g *group) free() {
	clear(g.steps)
	clear(g.victims)
	*g = group{steps: g.steps[:0], states: g.states[:0], scratch: g.scratch[:0], victims: g.victims[:0]}
	groups.Put(g)
}

// takeLocked takes under the locks of a set of shards. An algorithm or a clock
// that panics must not leave them locked: net/http goes on serving.
func (g *group) takeLocked(set uint64, all bool) error {
	g.s.lock(set)
	defer g.s.unlock(set)
	return g.take(g.s.clock(), all)
}

// take decides and writes under the locks of g's shards, or of all. All that an
// algorithm is asked comes before the first key is written.
func (g *group) take(now int64, all bool) error {
	g.states = g.states[:0]
	refused := false
	for i := range g.steps {
		g.find(i, now)
		mode, cost := g.charges[i].Mode, g.charges[i].Cost
		if mode == store.Forget {
			g.renew(i, now)
			continue
		}
		if mode == store.Strike {
			cost = 0
		}
		g.decide(i, now, cost)
		if g.results[i].Limited && mode != store.Shadow {
			refused = true
		}
	}
	if refused {
		g.refuse(now)
	}
	for i := range g.steps {
		g.outlast(i, now)
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
		g.s.forget(st.shard, slot)
	}
}

// decide asks the policy of charge i and keeps the next state.
func (g *group) decide(i int, now, cost int64) {
	c, st := &g.charges[i], &g.steps[i]
	st.from = len(g.states)
	g.states, g.results[i] = c.Policy.Decide(g.states, st.state(), now, cost, c.AgeMicros())
	st.to = len(g.states)
	st.made = cost != 0 && !g.results[i].Limited
}

// renew answers charge i as a look at a key never seen, which its key becomes.
func (g *group) renew(i int, now int64) {
	st := &g.steps[i]
	g.scratch, g.results[i] = g.charges[i].Policy.Decide(g.scratch[:0], nil, now, 0, 0)
	st.from, st.to, st.made = len(g.states), len(g.states), true
}

// refuse turns what was decided into the answers of a refused group: only Strike
// charges are made. To one that refuses alone nothing remains to be taken.
func (g *group) refuse(now int64) {
	for i := range g.steps {
		r := &g.results[i]
		switch {
		case g.charges[i].Mode == store.Strike:
			if cost := min(g.charges[i].Cost, r.Remaining); cost > 0 {
				g.decide(i, now, cost)
			}
		case g.steps[i].made:
			g.decide(i, now, 0)
			r.Limited, r.RetryAfter = false, 0
		}
	}
}

// outlast works out how long the key of charge i lives, and is limited.
func (g *group) outlast(i int, now int64) {
	st, r := &g.steps[i], &g.results[i]
	st.expires, st.limited = now+r.ResetAfter.Microseconds(), 0
	if r.Remaining == 0 {
		st.limited = now + g.untilOne(i, now)
	}
}

// untilOne is how many µs pass until one unit can be taken where nothing
// remains. For a charge of 1, and a Strike of 1 that is only a look, that is its
// own RetryAfter.
func (g *group) untilOne(i int, now int64) int64 {
	st, c := &g.steps[i], &g.charges[i]
	if c.Cost == 1 {
		return g.results[i].RetryAfter.Microseconds()
	}
	state := st.state()
	if st.made {
		state = g.states[st.from:st.to]
	}
	var look algorithms.Result
	g.scratch, look = c.Policy.Decide(g.scratch[:0], state, now, 0, 0)
	return look.RetryAfter.Microseconds()
}

// write keeps what charge i has come to.
func (g *group) write(i int, now int64) {
	st := &g.steps[i]
	switch {
	case !st.made:
		if st.slot != none {
			st.shard.lengthen(st.slot, st.expires, st.limited)
		}
	case st.from < st.to:
		if st.slot == none {
			st.slot = st.shard.add(st.id)
		}
		st.shard.set(st.slot, g.states[st.from:st.to], st.expires, st.limited, now)
		g.s.wake(st.expires, now)
	case st.slot != none:
		g.s.forget(st.shard, st.slot)
	}
}
