package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// safeModel is the model for many callers.
type safeModel struct {
	mu sync.Mutex
	*model
}

func (s *safeModel) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Take(ctx, charges, results)
}

func TestModel(t *testing.T) {
	Run(t, func(_ *testing.T, c *Clock) store.Store { return &safeModel{model: newModel(c)} }, Options{})
}

// wrong is a store with one mistake around the model.
type wrong struct {
	safeModel
	take func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error
}

func (w *wrong) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	return w.take(&w.safeModel, ctx, charges, results)
}

type takeFunc = func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error

// each makes another charge of each charge.
func each(change func(c store.Charge) store.Charge) takeFunc {
	return func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		changed := make([]store.Charge, len(charges))
		for i, c := range charges {
			changed[i] = change(c)
		}
		return m.Take(ctx, changed, results)
	}
}

// after changes the answers.
func after(change func(charges []store.Charge, results []algorithms.Result)) takeFunc {
	return func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		err := m.Take(ctx, charges, results)
		if err == nil {
			change(charges, results)
		}
		return err
	}
}

// mistake breaks a sentence.
type mistake struct {
	sentence sentence
	name     string
	take     takeFunc
}

// Each sentence that a check can hold is broken, and Run must see it.
func TestRunSeesMistakes(t *testing.T) {
	mistakes := []mistake{
		{1, "one by one", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			if err := store.Check(ctx, charges, results); err != nil {
				return err
			}
			for i := range charges {
				if err := m.Take(ctx, charges[i:i+1], results[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		}},
		{1, "bans do not refuse", each(func(c store.Charge) store.Charge {
			if c.Mode == store.Strike {
				c.Mode, c.Cost = store.Shadow, 0
			}
			return c
		})},
		{1, "a look between check and charge", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			looks := make([]store.Charge, len(charges))
			for i, c := range charges {
				looks[i] = c
				looks[i].Cost = min(c.Cost, 0)
			}
			if err := m.Take(ctx, looks, results); err != nil {
				return err
			}
			if len(charges) == 2 && (results[0].Limited || results[1].Limited) {
				return nil
			}
			for i := range charges {
				if err := m.Take(ctx, charges[i:i+1], results[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		}},
		{2, "the last microsecond is lost", after(func(_ []store.Charge, results []algorithms.Result) {
			for i := range results {
				results[i].ResetAfter = results[i].ResetAfter / 1000_000 * 1000_000
			}
		})},
		{3, "all of a refused group are limited", after(func(_ []store.Charge, results []algorithms.Result) {
			limited := false
			for _, r := range results {
				limited = limited || r.Limited
			}
			for i := range results {
				results[i].Limited = limited
			}
		})},
		{4, "the strictest goes first", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			if err := m.Take(ctx, charges, results); err != nil || len(charges) < 2 || !results[2%len(results)].Limited {
				return err
			}
			return m.Take(ctx, charges[:1], make([]algorithms.Result, 1)) // charged all the same
		}},
		{4, "life times are not lengthened", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			before := map[stateID]modelKey{}
			for _, c := range charges {
				if c.Policy != nil {
					before[idOf(c)] = m.keys[idOf(c)]
				}
			}
			err := m.model.Take(ctx, charges, results)
			for i, c := range charges {
				if err == nil && (results[i].Limited || c.Cost == 0) && before[idOf(c)].state != nil {
					m.keys[idOf(c)] = before[idOf(c)]
				}
			}
			return err
		}},
		{5, "shadows refuse", each(func(c store.Charge) store.Charge {
			if c.Mode == store.Shadow {
				c.Mode = store.Enforce
			}
			return c
		})},
		{6, "strikes are looks", each(func(c store.Charge) store.Charge {
			if c.Mode == store.Strike {
				c.Cost = 0
			}
			return c
		})},
		{6, "strikes are taken from all", each(func(c store.Charge) store.Charge {
			if c.Mode == store.Strike {
				c.Mode = store.Enforce
			}
			return c
		})},
		{7, "nothing comes back", each(func(c store.Charge) store.Charge {
			c.Cost = max(c.Cost, 0)
			return c
		})},
		{7, "age is ignored", each(func(c store.Charge) store.Charge {
			c.Age = min(c.Age, 0)
			return c
		})},
		{8, "a look takes one", each(func(c store.Charge) store.Charge {
			if c.Cost == 0 && c.Mode == store.Enforce {
				c.Cost = 1
			}
			return c
		})},
		{9, "keys are folded", each(func(c store.Charge) store.Charge {
			if c.Key == "K" {
				c.Key = "k"
			}
			return c
		})},
		{9, "policies share keys", each(func(c store.Charge) store.Charge {
			if c.Policy != nil && c.Policy.Name() == "q" {
				c.Policy, _ = algorithms.NewPolicy("p", c.Policy.Algorithm(), c.Policy.Limit())
			}
			return c
		})},
		{10, "an hour is forever", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			err := m.Take(ctx, charges, results)
			if len(charges) == 1 && len(results) == 1 && charges[0].Cost == 0 {
				results[0].ResetAfter += 1
			}
			return err
		}},
		{11, "mistakes are charged", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			err := m.Take(ctx, charges, results)
			if errors.Is(err, store.ErrDuplicate) {
				_ = m.Take(ctx, charges[:1], results[:1])
			}
			return err
		}},
		{11, "duplicates pass", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			if err := m.Take(ctx, charges, results); !errors.Is(err, store.ErrDuplicate) {
				return err
			}
			return m.Take(ctx, charges[:1], results[:1])
		}},
		{12, "ctx is ignored", func(m *safeModel, _ context.Context, charges []store.Charge, results []algorithms.Result) error {
			return m.Take(context.Background(), charges, results)
		}},
		{12, "ctx is looked at too late", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			if err := m.Take(context.Background(), charges, results); err != nil {
				return err
			}
			return ctx.Err()
		}},
		{14, "any number of results will do", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
			if len(results) < len(charges) {
				charges = charges[:len(results)]
			}
			return m.Take(ctx, charges, results)
		}},
	}
	for _, m := range slices.Concat(mistakes, forgetMistakes, keyMistakes, boundMistakes) {
		t.Run(fmt.Sprintf("%d/%s", m.sentence, m.name), func(t *testing.T) {
			said := &recorder{}
			for _, c := range checks {
				clock := NewClock()
				w := &wrong{safeModel: safeModel{model: newModel(clock)}, take: m.take}
				r := record(func(r reporter) {
					c.check(&fixture{reporter: r, o: Options{Steps: 300, Seed: 42}, a: algorithms.GCRA{}, clock: clock, store: w})
				})
				said.said = append(said.said, r.said...)
			}
			if !said.broke(fmt.Sprintf("sentence %d", int(m.sentence))) {
				t.Errorf("not seen; this was said:\n%s", said.summary())
			}
		})
	}
}
