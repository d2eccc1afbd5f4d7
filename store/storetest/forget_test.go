package storetest

import (
	"context"
	"runtime"
	"slices"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// forgets tells whether a charge is in Forget mode.
func forgets(c store.Charge) bool { return c.Mode == store.Forget }

// refused tells whether the model refuses a group, which it makes.
func refused(charges []store.Charge, results []algorithms.Result) bool {
	for i, r := range results {
		if r.Limited && charges[i].Mode != store.Shadow {
			return true
		}
	}
	return false
}

// forgetMistakes are those in Forget mode.
var forgetMistakes = []mistake{
	{15, "to forget is to look", each(func(c store.Charge) store.Charge {
		if forgets(c) {
			c.Mode = store.Enforce
		}
		return c
	})},
	{15, "what is limited stays", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		before := map[stateID]modelKey{}
		for _, c := range charges {
			if c.Policy != nil {
				before[idOf(c)] = m.keys[idOf(c)]
			}
		}
		if err := m.model.Take(ctx, charges, results); err != nil {
			return err
		}
		for _, c := range charges {
			key := before[idOf(c)]
			if _, look := c.Policy.Decide(nil, key.state, m.clock.Now().UnixMicro(), 0, 0); look.Limited && forgets(c) {
				m.keys[idOf(c)] = key
			}
		}
		return nil
	}},
	{15, "what is limited refuses", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		changed := slices.Clone(charges)
		for i, c := range charges {
			if look := make([]algorithms.Result, 1); forgets(c) && m.Take(ctx, []store.Charge{{Policy: c.Policy, Key: c.Key}}, look) == nil && look[0].Limited {
				changed[i].Mode = store.Enforce
			}
		}
		return m.Take(ctx, changed, results)
	}},
	{15, "the answer is of the key as it was", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		before := slices.Clone(results)
		looked := make([]bool, len(charges))
		for i, c := range charges {
			looked[i] = i < len(before) && forgets(c) && m.Take(ctx, []store.Charge{{Policy: c.Policy, Key: c.Key}}, before[i:i+1]) == nil
		}
		err := m.Take(ctx, charges, results)
		for i := range looked {
			if err == nil && looked[i] && !refused(charges, results) {
				results[i] = before[i]
			}
		}
		return err
	}},
	{15, "under another limit there is another key", each(func(c store.Charge) store.Charge {
		if forgets(c) && c.Policy != nil && c.Policy.Limit().Count == 9 {
			c.Key += "9"
		}
		return c
	})},
	{15, "a shadow that does not fit is a refusal", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		changed := slices.Clone(charges)
		if slices.ContainsFunc(charges, forgets) {
			for i, c := range charges {
				if c.Mode == store.Shadow {
					changed[i].Mode = store.Enforce
				}
			}
		}
		return m.Take(ctx, changed, results)
	}},
	{4, "a refused group forgets", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		err := m.Take(ctx, charges, results)
		if err != nil || !refused(charges, results) {
			return err
		}
		for _, c := range charges {
			if forgets(c) {
				err = m.Take(ctx, []store.Charge{c}, make([]algorithms.Result, 1))
			}
		}
		return err
	}},
	{3, "in a refused group what is full is limited", after(func(charges []store.Charge, results []algorithms.Result) {
		for i, c := range charges {
			results[i].Limited = results[i].Limited || forgets(c) && results[i].Remaining == 0
		}
	})},
	{3, "a refused group shows what it would have forgotten", after(func(charges []store.Charge, results []algorithms.Result) {
		for i, c := range charges {
			if forgets(c) {
				results[i] = fresh(results[i].Limit)
			}
		}
	})},
	{9, "all of a key is forgotten", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		err := m.Take(ctx, charges, results)
		if err != nil || refused(charges, results) {
			return err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, c := range charges {
			for id := range m.keys {
				if forgets(c) && id.key == c.Key {
					delete(m.keys, id)
				}
			}
		}
		return nil
	}},
	{11, "to forget may cost", each(func(c store.Charge) store.Charge {
		if forgets(c) {
			c.Cost = 0
		}
		return c
	})},
	{11, "what is forgotten may have an age", each(func(c store.Charge) store.Charge {
		if forgets(c) {
			c.Age = 0
		}
		return c
	})},
	{1, "one is forgotten after the other", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		if len(charges) != 2 || !forgets(charges[0]) || !forgets(charges[1]) || len(results) != 2 {
			return m.Take(ctx, charges, results)
		}
		if err := m.Take(ctx, charges[:1], results[:1]); err != nil {
			return err
		}
		for range 1000 { // or until another has seen it
			m.mu.Lock()
			_, charged := m.keys[idOf(charges[0])]
			m.mu.Unlock()
			if charged {
				break
			}
			runtime.Gosched()
		}
		return m.Take(ctx, charges[1:], results[1:])
	}},
}
