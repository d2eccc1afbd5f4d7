package casetest_test

import (
	"context"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// bare is the algorithms alone: it keeps what Decide returns, also for a refusal
// or a look, and lets no key run out. What a store would hide shows here.
type bare struct {
	clock  *storetest.Clock
	states map[string]algorithms.State
}

func (b *bare) Validate(...*algorithms.Policy) error { return nil }

func (b *bare) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := store.Check(ctx, charges, results); err != nil {
		return err
	}
	now, refused := b.clock.Now().UnixMicro(), false
	next := make([]algorithms.State, len(charges))
	for i, c := range charges {
		next[i], results[i] = c.Policy.Decide(nil, b.states[c.Policy.ID()+" "+c.Key], now, c.Cost, c.AgeMicros())
		refused = refused || results[i].Limited
	}
	for i, c := range charges {
		if results[i].Limited || !refused {
			b.states[c.Policy.ID()+" "+c.Key] = next[i]
		}
	}
	return nil
}

func TestCases(t *testing.T) {
	casetest.Cases(t, func(_ *testing.T, clock *storetest.Clock) store.Store {
		return &bare{clock, map[string]algorithms.State{}}
	})
}
