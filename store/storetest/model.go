package storetest

import (
	"context"
	"slices"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// model is a store as the contract has it: slow, plain, one caller at a time.
// What it answers is right by definition.
type model struct {
	clock *Clock
	keys  map[stateID]modelKey
}

// stateID is what a state belongs to: sentence 9.
type stateID struct{ policy, algorithm, key string }

type modelKey struct {
	state   algorithms.State
	expires int64
	limit   algorithms.Limit // under which expires was set
}

func newModel(c *Clock) *model { return &model{clock: c, keys: map[stateID]modelKey{}} }

func idOf(c store.Charge) stateID {
	return stateID{c.Policy.Name(), c.Policy.Algorithm().Name(), c.Key}
}

func (m *model) Validate(...*algorithms.Policy) error { return nil }

func (m *model) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := store.Check(ctx, charges, results); err != nil {
		return err
	}
	now := m.clock.Now().UnixMicro()
	decide := func(c store.Charge, cost int64) (algorithms.State, algorithms.Result) {
		key := m.keys[idOf(c)]
		if key.expires <= now {
			key.state = nil
		}
		return c.Policy.Decide(nil, key.state, now, cost, c.AgeMicros())
	}
	refuses := func(i int) bool { return results[i].Limited && charges[i].Mode != store.Shadow }

	next := make([]algorithms.State, len(charges))
	made := make([]bool, len(charges))
	refusals := 0
	for i, c := range charges {
		if c.Mode == store.Forget {
			_, results[i] = c.Policy.Decide(nil, nil, now, 0, 0)
			made[i] = true
			continue
		}
		cost := c.Cost
		if c.Mode == store.Strike {
			cost = 0
		}
		next[i], results[i] = decide(c, cost)
		made[i] = cost != 0 && !results[i].Limited
		if refuses(i) {
			refusals++
		}
	}
	if refusals > 0 {
		alone := refusals == 1
		for i, c := range charges {
			made[i] = false
			switch {
			case c.Mode == store.Strike && !(alone && refuses(i)):
				cost := min(c.Cost, results[i].Remaining)
				if cost > 0 {
					next[i], results[i] = decide(c, cost)
					made[i] = true
				}
			case !results[i].Limited:
				_, results[i] = decide(c, 0)
				results[i].Limited, results[i].RetryAfter = false, 0
			}
		}
	}
	for i, c := range charges {
		m.keep(c, made[i], next[i], now, results[i])
	}
	return nil
}

func (m *model) keep(c store.Charge, made bool, next algorithms.State, now int64, r algorithms.Result) {
	id := idOf(c)
	key, ok := m.keys[id]
	if ok && key.expires <= now-lingers { // until then justExpired is asked for it
		delete(m.keys, id)
	}
	expires := now + r.ResetAfter.Microseconds()
	switch {
	case made && len(next) > 0:
		m.keys[id] = modelKey{slices.Clone(next), expires, c.Policy.Limit()}
	case made:
		delete(m.keys, id)
	case ok && key.expires > now && expires >= key.expires:
		m.keys[id] = modelKey{key.state, expires, c.Policy.Limit()}
	}
}

// lingers is how long, in µs, a key may live on after its end in a store that
// counts life times in milliseconds: both ends of one can be rounded up.
const lingers = 2000

// justExpired tells whether a key has just run out, and a store that has it still
// may answer otherwise: always if anything does, else if the limit is another now.
func (m *model) justExpired(policies map[string]*algorithms.Policy, anything bool) bool {
	now := m.clock.Now().UnixMicro()
	for id, k := range m.keys {
		if k.expires <= now && k.expires > now-lingers && (anything || policies[id.policy].Limit() != k.limit) {
			return true
		}
	}
	return false
}
