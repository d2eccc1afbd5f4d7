package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// sub is a store whose calls are kept, and can fail.
type sub struct {
	store.Store
	calls  []store.Charge
	before func(n int, ctx context.Context, c store.Charge) error // of call n
	after  func(n int) error
}

var errAway = errors.New("away")

func (s *sub) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	n := len(s.calls)
	s.calls = append(s.calls, charges...)
	if s.before != nil {
		if err := s.before(n, ctx, charges[0]); err != nil {
			return err
		}
	}
	err := s.Store.Take(ctx, charges, results)
	if err == nil && s.after != nil {
		return s.after(n)
	}
	return err
}

func (s *sub) costs() (costs []int64) {
	for _, c := range s.calls {
		costs = append(costs, c.Cost)
	}
	return costs
}

// bench is a sequential store over memory, with one clock for both.
type bench struct {
	t     *testing.T
	clock *storetest.Clock
	sub   *sub
	store store.Store
	// wide and other allow 10 a minute, tight 1, ban 3 an hour.
	wide, other, tight, ban *algorithms.Policy
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, clock: storetest.NewClock()}
	b.sub = &sub{Store: memstore.New(memstore.Config{Clock: b.clock.Now})}
	b.store = store.SequentialAt(b.sub, b.clock.Now)
	newPolicy := func(name string, l algorithms.Limit) *algorithms.Policy {
		p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, l)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b.wide, b.other = newPolicy("wide", algorithms.PerMinute(10)), newPolicy("other", algorithms.PerMinute(10))
	b.tight, b.ban = newPolicy("tight", algorithms.PerMinute(1)), newPolicy("ban", algorithms.PerHour(3))
	return b
}

func (b *bench) take(ctx context.Context, charges ...store.Charge) ([]algorithms.Result, error) {
	results := make([]algorithms.Result, len(charges))
	return results, b.store.Take(ctx, charges, results)
}

// left is what remains of a policy for the key.
func (b *bench) left(p *algorithms.Policy, key string) int64 {
	b.t.Helper()
	r, err := store.Take(context.Background(), b.sub.Store, p, key, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Remaining
}

func (b *bench) wantLeft(p *algorithms.Policy, key string, want int64) {
	b.t.Helper()
	if got := b.left(p, key); got != want {
		b.t.Errorf("%s of %s: %d left, want %d", key, p.Name(), got, want)
	}
}
