package histories

import (
	"hash/maphash"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// cell is what a store keeps of a key under a policy.
type cell struct {
	state   algorithms.State
	expires int64 // µs; from then on it is a key never seen
}

// decide is the contract of store.Store for one group: it answers charges that find
// these cells at the time now, in µs, and says what the cells are after it.
func decide(charges []store.Charge, found []cell, now int64) ([]algorithms.Result, []cell) {
	results, next := make([]algorithms.Result, len(charges)), make([]cell, len(charges))
	take := func(i int, cost int64) {
		c, before := &charges[i], found[i]
		if before.expires <= now {
			before = cell{}
		}
		var state algorithms.State
		state, results[i] = c.Policy.Decide(nil, before.state, now, cost, c.AgeMicros())
		next[i] = before
		if cost != 0 && !results[i].Limited {
			next[i] = cell{}
			if len(state) > 0 {
				next[i] = cell{state, now + results[i].ResetAfter.Microseconds()}
			}
		}
	}
	refusals, refuser := 0, -1
	for i, c := range charges {
		switch c.Mode {
		case store.Forget:
			_, results[i] = c.Policy.Decide(nil, nil, now, 0, 0)
		case store.Strike:
			take(i, 0)
		default:
			take(i, c.Cost)
		}
		if results[i].Limited && c.Mode != store.Shadow {
			refusals, refuser = refusals+1, i
		}
	}
	if refusals == 0 {
		return results, next
	}
	for i, c := range charges {
		switch {
		case c.Mode == store.Forget:
			take(i, 0)
			results[i].Limited, results[i].RetryAfter = false, 0
		case c.Mode == store.Strike && (refusals > 1 || refuser != i):
			if cost := min(c.Cost, results[i].Remaining); cost > 0 {
				take(i, cost)
			}
		case !results[i].Limited:
			take(i, 0)
			results[i].Limited, results[i].RetryAfter = false, 0
		}
	}
	return results, next
}

// world is what a store is at one moment: the model's state.
type world struct {
	now   int64 // when the last call happened; time never runs back
	cells [cells]cell
	over  bool // the last call that has returned has happened
}

// at is w at the time now. Of what has run out nothing stays, so that worlds that
// can't be told apart are equal.
func (w world) at(now int64) world {
	w.now = now
	for i, c := range w.cells {
		if c.expires <= now {
			w.cells[i] = cell{}
		}
	}
	return w
}

// call makes o.
func (w world) call(o *operation) ([]algorithms.Result, world) {
	found := make([]cell, len(o.cells))
	for i, n := range o.cells {
		found[i] = w.cells[n]
	}
	results, next := decide(o.charges, found, w.now)
	for i, n := range o.cells {
		w.cells[n] = next[i]
	}
	return results, w
}

// step gives the worlds that there may be after o: the store has read its clock at
// some moment between call and return. Of times that lead to the same cells, the
// first is enough: what can follow on a later one can follow on it.
//
// What has failed may have happened at any time, which tells something only if it
// changes a cell, or never, which is known once all is over. To say "or not" at each
// step would be as right, and far too slow.
func step(w world, o *operation) (after []any) {
	failed := o.err != nil
	if o.end || failed && w.over {
		w.over = true
		return []any{w}
	}
	for _, now := range o.times {
		if now < w.now {
			continue
		}
		before := w.at(now)
		results, next := before.call(o)
		if failed && !before.same(next) || !failed && slices.Equal(results, o.results) {
			if !slices.ContainsFunc(after, func(a any) bool { return a.(world).same(next) }) {
				after = append(after, next)
			}
		}
	}
	return after
}

// same tells whether two worlds have the same cells.
func (w world) same(v world) bool {
	return slices.EqualFunc(w.cells[:], v.cells[:], func(a, b cell) bool {
		return a.expires == b.expires && slices.Equal(a.state, b.state)
	})
}

func (w world) equal(v world) bool { return w.now == v.now && w.over == v.over && w.same(v) }

var hashSeed = maphash.MakeSeed()

func (w world) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	maphash.WriteComparable(&h, w.now)
	for _, c := range w.cells {
		maphash.WriteComparable(&h, c.expires)
		for _, n := range c.state {
			maphash.WriteComparable(&h, n)
		}
	}
	return h.Sum64()
}

// model is the contract as porcupine checks it. Where all groups are single charges,
// no call tells of two cells, and each is checked apart: that is faster, and the
// clock need not be in one order for all.
func model(groups bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init:  func() []any { return []any{world{}} },
		Step:  func(w, o, _ any) []any { return step(w.(world), o.(*operation)) },
		Equal: func(w, v any) bool { return w.(world).equal(v.(world)) },
		Hash:  func(w any) uint64 { return w.(world).hash() },

		DescribeOperation: func(o, _ any) string { return o.(*operation).String() },
	}
	if !groups {
		m.Partition = func(all []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, cells)
			for _, o := range all {
				for n := range parts {
					if op := o.Input.(*operation); op.end || op.cells[0] == n {
						parts[n] = append(parts[n], o)
					}
				}
			}
			return parts
		}
	}
	return m.ToModel()
}
