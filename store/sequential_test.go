package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func TestSequentialRun(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, c *storetest.Clock) store.Store {
		// Where the store's time stands still, so must that of ages: they would
		// drain what did not.
		return store.SequentialAt(memstore.New(memstore.Config{Clock: c.Now}), c.Now)
	}, storetest.Options{Except: map[string]string{
		"concurrent":    "sentence 1: another caller can see half of a group",
		"random limits": "sentence 4: undoing a charge under another limit changes a key's life time",
		"clock back":    "likewise",
	}})
}

// Round trips: one for each charge; a refused group's are undone, the last
// first, and the rest is looked at.
func TestSequentialCalls(t *testing.T) {
	b := newBench(t)
	group := []store.Charge{
		{Policy: b.wide, Key: "give", Cost: -1},
		{Policy: b.other, Key: "k", Cost: 3, Mode: store.Shadow},
		{Policy: b.wide, Key: "k", Cost: 2},
		{Policy: b.tight, Key: "k", Cost: 1},
		{Policy: b.wide, Key: "later", Cost: 4},
		{Policy: b.ban, Key: "k", Cost: 1, Mode: store.Strike},
		{Policy: b.wide, Key: "look"},
	}
	if _, err := b.take(t.Context(), group...); err != nil {
		t.Fatal(err)
	}
	if got, want := b.sub.costs(), []int64{0, 0, 2, 1, 4, 3, -1}; !slices.Equal(got, want) {
		t.Errorf("a group that passes: costs %d, want looks, takes, shadows, give-backs: %d", got, want)
	}
	b.sub.calls = nil
	rs, err := b.take(t.Context(), group...)
	if err != nil {
		t.Fatal(err)
	}
	// looks, takes until refused, undo, strike, looks at the give-back, the shadow
	// and the later
	if got, want := b.sub.costs(), []int64{0, 0, 2, 1, -2, 1, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("a group that is refused: costs %d, want %d", got, want)
	}
	for i, r := range rs {
		if r.Limited != (i == 3) || (r.RetryAfter != 0) != (i == 3) {
			t.Errorf("charge %d: %+v", i, r)
		}
	}
	// Of what comes later and does not fit, a refusal tells how long it waits.
	b.sub.calls = nil
	rs, err = b.take(t.Context(), store.Charge{Policy: b.tight, Key: "k", Cost: 1}, store.Charge{Policy: b.wide, Key: "k", Cost: 10}, store.Charge{Policy: b.wide, Key: "l", Cost: 11})
	if err != nil || !rs[1].Limited || rs[1].RetryAfter != 12*time.Second || !rs[2].Limited || rs[2].RetryAfter != algorithms.Never {
		t.Errorf("%+v, %v", rs, err)
	}
	if got, want := b.sub.costs(), []int64{1, 0, 10, 0, 11}; !slices.Equal(got, want) {
		t.Errorf("costs %d, want %d", got, want)
	}
	b.wantLeft(b.wide, "k", 8)
	b.wantLeft(b.wide, "later", 6)
	b.wantLeft(b.ban, "k", 2)

	b.sub.calls = nil
	if _, err := b.take(t.Context(), group[5]); err != nil || len(b.sub.calls) != 1 || b.sub.calls[0] != group[5] {
		t.Errorf("a group of one must be handed through: %+v, %v", b.sub.calls, err)
	}
}

// A charge comes back as old as it is, and one that the caller gives back has
// grown older by then.
func TestSequentialAge(t *testing.T) {
	b := newBench(t)
	b.sub.before = func(int, context.Context, store.Charge) error { b.clock.Advance(time.Second); return nil }
	if _, err := b.take(t.Context(), store.Charge{Policy: b.tight, Key: "k", Cost: 1}, store.Charge{Policy: b.wide, Key: "k", Cost: -1, Age: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if got := b.sub.calls[1].Age; got != time.Minute+time.Second {
		t.Errorf("given back after 1 s: age %v", got)
	}
	b.sub.calls = nil
	if _, err := b.take(t.Context(), store.Charge{Policy: b.wide, Key: "k", Cost: 2}, store.Charge{Policy: b.other, Key: "k", Cost: 2}, store.Charge{Policy: b.tight, Key: "k", Cost: 1}); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]time.Duration{3: 2 * time.Second, 4: 4 * time.Second} {
		// other's charge began 2 s before its undo, wide's 4 s.
		if got := b.sub.calls[n]; got.Cost != -2 || got.Age != want {
			t.Errorf("call %d: cost %d, age %v, want an undo of age %v", n, got.Cost, got.Age, want)
		}
	}
	const most = 1<<63 - 1
	_, err := b.take(t.Context(), store.Charge{Policy: b.tight, Key: "l", Cost: 1}, store.Charge{Policy: b.wide, Key: "l", Cost: -1, Age: most})
	if got := b.sub.calls[len(b.sub.calls)-1].Age; err != nil || got != most {
		t.Errorf("the greatest age became %v, %v", got, err)
	}
}

// Whichever call fails, what was made before it is undone, and the error is
// returned.
func TestSequentialError(t *testing.T) {
	for fails := range 4 {
		b := newBench(t)
		b.sub.before = func(n int, _ context.Context, _ store.Charge) error {
			if n == fails {
				return errAway
			}
			return nil
		}
		_, err := b.take(t.Context(), store.Charge{Policy: b.wide, Key: "k", Cost: 1}, store.Charge{Policy: b.other, Key: "k", Cost: 2}, store.Charge{Policy: b.ban, Key: "k", Cost: 1, Mode: store.Strike}, store.Charge{Policy: b.tight, Key: "k", Cost: 1, Mode: store.Shadow})
		if !errors.Is(err, errAway) {
			t.Errorf("call %d fails: %v", fails, err)
		}
		for p, full := range map[*algorithms.Policy]int64{b.wide: 10, b.other: 10, b.tight: 1, b.ban: 3} {
			b.wantLeft(p, "k", full)
		}
	}
}

func TestSequentialUndoFails(t *testing.T) {
	b := newBench(t)
	errUndo := errors.New("undo")
	b.sub.before = func(_ int, _ context.Context, c store.Charge) error {
		switch {
		case c.Policy == b.tight && c.Key == "err":
			return errAway
		case c.Cost < 0 && c.Policy == b.other:
			return errUndo
		}
		return nil
	}
	group := []store.Charge{{Policy: b.wide, Key: "k", Cost: 1}, {Policy: b.other, Key: "k", Cost: 1}, {Policy: b.tight, Key: "err", Cost: 1}}
	if _, err := b.take(t.Context(), group...); !errors.Is(err, errAway) || !errors.Is(err, errUndo) {
		t.Errorf("both errors must be told: %v", err)
	}
	b.wantLeft(b.wide, "k", 10) // undone all the same
	b.wantLeft(b.other, "k", 9)

	// A refusal that could not be undone is no clean refusal.
	group[2] = store.Charge{Policy: b.tight, Key: "k", Cost: 2}
	if _, err := b.take(t.Context(), group...); !errors.Is(err, errUndo) {
		t.Errorf("a refused group that stays charged: %v", err)
	}
	b.wantLeft(b.wide, "k", 10)
	b.wantLeft(b.other, "k", 8)
}

// A caller that goes away in the middle does not cut the undoing off, which is
// bounded instead.
func TestSequentialCancelled(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), &b, "value"))
	b.sub.after = func(n int) error {
		if n == 1 {
			cancel()
		}
		return nil
	}
	undone := 0
	b.sub.before = func(_ int, ctx context.Context, c store.Charge) error {
		if c.Cost < 0 {
			undone++
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Second || ctx.Err() != nil || ctx.Value(&b) != "value" {
				t.Errorf("undo: deadline %v %v, %v", deadline, ok, ctx.Err())
			}
		}
		return nil
	}
	_, err := b.take(ctx, store.Charge{Policy: b.wide, Key: "k", Cost: 1}, store.Charge{Policy: b.other, Key: "k", Cost: 1}, store.Charge{Policy: b.tight, Key: "k", Cost: 1})
	if !errors.Is(err, context.Canceled) || undone != 2 {
		t.Errorf("%v, %d undone", err, undone)
	}
	b.wantLeft(b.wide, "k", 10)
	b.wantLeft(b.other, "k", 10)
}

// What others do between two charges may change the answer, but never leaves
// more or less charged than the answer says.
func TestSequentialMeets(t *testing.T) {
	b := newBench(t)
	// Someone else strikes after the look: what remains is taken.
	b.sub.before = func(n int, ctx context.Context, c store.Charge) error {
		if n == 2 && c.Policy == b.ban {
			_, err := store.Take(ctx, b.sub.Store, b.ban, "k", 1)
			return err
		}
		return nil
	}
	rs, err := b.take(t.Context(), store.Charge{Policy: b.ban, Key: "k", Cost: 3, Mode: store.Strike}, store.Charge{Policy: b.tight, Key: "k", Cost: 2})
	if err != nil || rs[0].Limited || rs[0].Remaining != 0 {
		t.Errorf("a strike of 3, of which 2 remain: %+v, %v", rs, err)
	}
	// A charge of a refused group did not fit as a look, and does a moment later.
	b = newBench(t)
	if _, err := store.Take(t.Context(), b.sub.Store, b.wide, "k", 10); err != nil {
		t.Fatal(err)
	}
	b.sub.before = func(n int, ctx context.Context, _ store.Charge) error {
		if n == 2 {
			_, err := store.Take(ctx, b.sub.Store, b.wide, "k", -10)
			return err
		}
		return nil
	}
	rs, err = b.take(t.Context(), store.Charge{Policy: b.tight, Key: "k", Cost: 2}, store.Charge{Policy: b.wide, Key: "k", Cost: 9})
	if err != nil || !rs[0].Limited || rs[1].Limited || rs[1].Remaining != 10 {
		t.Errorf("%+v, %v", rs, err)
	}
	b.wantLeft(b.wide, "k", 10)
}

func TestSequentialValidate(t *testing.T) {
	b := newBench(t)
	v := &picky{}
	err := store.Sequential(v).Validate(b.wide, nil, b.tight, b.ban)
	if !slices.Equal(v.asked, []int{1, 1, 1}) {
		t.Errorf("asked for %v policies at a time, want one", v.asked)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 2 || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("two mistakes, of which one is told thrice: %v", err)
	}
}

// picky refuses all policies for the same reason.
type picky struct{ asked []int }

func (p *picky) Validate(policies ...*algorithms.Policy) error {
	p.asked = append(p.asked, len(policies))
	return errors.ErrUnsupported
}

func (p *picky) Take(context.Context, []store.Charge, []algorithms.Result) error { return nil }

// For one caller at a time, and one limit for each policy, the answers are those
// of a store that decides a group as one.
func TestSequentialRandom(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 2))
	b := newBench(t)
	whole := memstore.New(memstore.Config{Clock: b.clock.Now})
	policies, keys := []*algorithms.Policy{b.wide, b.other, b.tight, b.ban}, []string{"k", "l"}
	refused := 0
	for step := range 20_000 {
		b.clock.Advance(time.Duration(rnd.Int64N(1 << rnd.IntN(36))).Truncate(time.Microsecond))
		var group []store.Charge
		for _, n := range rnd.Perm(len(policies) * len(keys))[:1+rnd.IntN(5)] {
			c := store.Charge{Policy: policies[n/2], Key: keys[n%2], Mode: store.Mode(rnd.IntN(5) % 3), Cost: rnd.Int64N(6) - 1}
			if rnd.IntN(10) == 0 {
				c.Cost, c.Mode = 0, store.Forget
			}
			if c.Cost < 0 {
				c.Age = time.Duration(rnd.Int64N(int64(time.Minute)))
				if c.Mode == store.Strike {
					c.Cost = 1
				}
			}
			group = append(group, c)
		}
		want := make([]algorithms.Result, len(group))
		got, err := b.take(t.Context(), group...)
		if err := errors.Join(err, whole.Take(t.Context(), group, want)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("step %d, seed %d: %+v:\ngot  %+v\nwant %+v", step, seed, group, got, want)
		}
		for _, r := range got {
			if r.Limited {
				refused++
				break
			}
		}
	}
	if refused < 1000 || refused > 19_000 {
		t.Errorf("%d of 20000 groups limited: not a test", refused)
	}
}
