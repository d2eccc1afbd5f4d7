package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// modes are those of the calls that a store has seen.
func (s *sub) modes() (modes []store.Mode) {
	for _, c := range s.calls {
		modes = append(modes, c.Mode)
	}
	return modes
}

func (b *bench) full(p *algorithms.Policy, key string) {
	b.t.Helper()
	if _, err := store.Take(b.t.Context(), b.sub.Store, p, key, p.Limit().Count); err != nil {
		b.t.Fatal(err)
	}
}

// What is forgotten can't be undone, so it comes last, and not at all in a group
// that is refused: there it is looked at.
func TestSequentialForget(t *testing.T) {
	b := newBench(t)
	b.full(b.ban, "k")
	b.full(b.wide, "k")
	group := []store.Charge{
		{Policy: b.ban, Key: "k", Mode: store.Forget},
		{Policy: b.wide, Key: "k", Mode: store.Forget},
		{Policy: b.other, Key: "k", Cost: 2, Mode: store.Shadow},
		{Policy: b.tight, Key: "k", Cost: 1},
		{Policy: b.wide, Key: "new", Mode: store.Forget},
		{Policy: b.ban, Key: "other", Cost: 1, Mode: store.Strike},
	}
	rs, err := b.take(t.Context(), group...)
	if err != nil || rs[0].Remaining != 3 || rs[1].Remaining != 10 || rs[4].Remaining != 10 {
		t.Errorf("%+v, %v", rs, err)
	}
	if got, want := b.sub.modes(), []store.Mode{0, 0, 0, store.Forget, store.Forget, store.Forget}; !slices.Equal(got, want) {
		t.Errorf("modes %v, want %v", got, want)
	}
	if got, want := b.sub.costs(), []int64{0, 1, 2, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("costs %d, want %d", got, want)
	}
	b.wantLeft(b.ban, "k", 3)
	b.wantLeft(b.wide, "k", 10)

	b.full(b.ban, "k")
	b.full(b.wide, "k")
	b.sub.calls = nil
	rs, err = b.take(t.Context(), group...)
	if err != nil || !rs[3].Limited || rs[0].Limited || rs[0].Remaining != 0 || rs[0].RetryAfter != 0 || rs[0].ResetAfter == 0 || rs[1].Limited || rs[4].Remaining != 10 {
		t.Errorf("a group that is refused: %+v, %v", rs, err)
	}
	if modes := b.sub.modes(); slices.Contains(modes, store.Forget) {
		t.Errorf("a group that is refused: modes %v", modes)
	}
	b.wantLeft(b.ban, "k", 0)
	b.wantLeft(b.wide, "k", 0)
	b.wantLeft(b.ban, "other", 2)

	b.sub.calls = nil
	if _, err := b.take(t.Context(), group[0]); err != nil || len(b.sub.calls) != 1 || b.sub.calls[0] != group[0] {
		t.Errorf("alone it must be handed through: %+v, %v", b.sub.calls, err)
	}
}

// Whichever call fails, what was taken is given back, and what was forgotten stays
// forgotten.
func TestSequentialForgetFails(t *testing.T) {
	for fails := range 3 {
		b := newBench(t)
		b.full(b.ban, "a")
		b.full(b.ban, "b")
		b.sub.before = func(n int, _ context.Context, _ store.Charge) error {
			if n == fails {
				return errAway
			}
			return nil
		}
		_, err := b.take(t.Context(), store.Charge{Policy: b.ban, Key: "a", Mode: store.Forget}, store.Charge{Policy: b.ban, Key: "b", Mode: store.Forget}, store.Charge{Policy: b.wide, Key: "k", Cost: 4})
		if !errors.Is(err, errAway) {
			t.Errorf("call %d fails: %v", fails, err)
		}
		b.wantLeft(b.wide, "k", 10)
		b.wantLeft(b.ban, "a", []int64{0, 0, 3}[fails])
		b.wantLeft(b.ban, "b", 0)
	}
}
