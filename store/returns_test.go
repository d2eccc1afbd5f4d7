package store_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// one makes a charge in a group of its own.
func one(s store.Store, c store.Charge) (algorithms.Result, error) {
	results := make([]algorithms.Result, 1)
	err := s.Take(context.Background(), []store.Charge{c}, results)
	return results[0], err
}

// While primary is away backup gives back what it took since, and no more.
func TestFallbackGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary, backup := newSwitched(), newSwitched()
		s, p := store.Fallback(primary, backup, nil), perHour(t, "p", 2)
		take := func(cost int64, age time.Duration) (algorithms.Result, error) {
			return one(s, store.Charge{Policy: p, Key: "k", Cost: cost, Age: age})
		}
		want := func(what string, remaining int64) {
			t.Helper()
			if r, err := take(0, 0); err != nil || r.Remaining != remaining {
				t.Errorf("%s: %+v, %v, want %d", what, r, err, remaining)
			}
		}
		if _, err := take(1, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		primary.err = errAway
		for range 2 {
			if r, err := take(1, 0); err != nil || r.Limited {
				t.Fatal(r, err)
			}
		}
		want("used up", 0)
		if _, err := take(-1, time.Second); err != errAway {
			t.Errorf("primary took it: %v, want its error", err)
		}
		want("primary's is not given back", 0)
		if _, err := take(-1, 0); err != nil {
			t.Errorf("backup took it: %v", err)
		}
		want("backup's is", 1)
	})
}

func TestFallbackForgets(t *testing.T) {
	primary, backup := newSwitched(), newSwitched()
	s, p := store.Fallback(primary, backup, nil), perHour(t, "p", 1)
	for _, away := range []error{errAway, nil} {
		for _, used := range []store.Store{primary.Store, backup.Store} {
			if _, err := store.Take(context.Background(), used, p, "k", 1); err != nil {
				t.Fatal(err)
			}
		}
		primary.err = away
		if _, err := one(s, store.Charge{Policy: p, Key: "k", Mode: store.Forget}); err != away {
			t.Errorf("%v, want primary's %v", err, away)
		}
		for i, used := range []store.Store{primary.Store, backup.Store} {
			r, err := store.Take(context.Background(), used, p, "k", 0)
			if forgot := r.Remaining == 1; err != nil || forgot != (i == 1 || away == nil) {
				t.Errorf("store %d, primary %v: %+v, %v", i, away, r, err)
			}
		}
	}
}

// What was not done is not said to be.
func TestFailOpenGivesNothingBack(t *testing.T) {
	inner, log := newSwitched(), &told{}
	inner.err = errAway
	s, p := store.FailOpen(inner, log.add), perHour(t, "p", 1)
	for _, c := range []store.Charge{{Policy: p, Key: "k", Cost: -1}, {Policy: p, Key: "k", Mode: store.Forget}} {
		if _, err := one(s, c); err != errAway {
			t.Errorf("%v, want the store's error", err)
		}
	}
	if len(log.errs) != 2 {
		t.Errorf("told %v", log.errs)
	}
}

// gated is a store that answers denied, and waits before it says so.
type gated struct {
	store.Store
	decided, answer chan struct{}
}

func (g *gated) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	err := g.Store.Take(ctx, charges, results)
	if charges[0].Cost > 0 {
		g.decided <- struct{}{}
		<-g.answer
	}
	return err
}

// A denial that was under way when its key was given back to is old.
func TestDenyCacheForgetsWhatIsUnderWay(t *testing.T) {
	g := &gated{newSwitched(), make(chan struct{}, 1), make(chan struct{}, 1)}
	s, p := store.DenyCache(g, time.Minute, 10), perHour(t, "p", 1)
	take := func(cost int64) algorithms.Result {
		r, err := store.Take(context.Background(), s, p, "k", cost)
		if err != nil {
			t.Error(err)
		}
		return r
	}
	g.answer <- struct{}{}
	take(1)
	<-g.decided
	denied := make(chan algorithms.Result)
	go func() { denied <- take(1) }()
	<-g.decided
	take(-1)
	g.answer <- struct{}{}
	if r := <-denied; !r.Limited {
		t.Errorf("%+v", r)
	}
	g.answer <- struct{}{}
	if r := take(1); r.Limited {
		t.Errorf("%+v, though it was given back", r)
	}
}

// A remembered denial does not hide mistakes.
func TestDenyCacheChecks(t *testing.T) {
	s, _ := denying(time.Minute, 10)
	p := perHour(t, "p", 1)
	takeAll(t, s, charge(p, "k", 1))
	takeAll(t, s, charge(p, "k", 1))
	err := s.Take(context.Background(), []store.Charge{charge(p, "k", 1), charge(p, "k", 1)}, make([]algorithms.Result, 2))
	if !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("%v, want ErrDuplicate", err)
	}
	var mistake *algorithms.FieldError
	if _, err := one(s, store.Charge{Policy: p, Key: "k", Cost: 1, Age: -1}); !errors.As(err, &mistake) {
		t.Errorf("%v, want a FieldError", err)
	}
}

func TestDenyCacheAtItsBounds(t *testing.T) {
	s, inner := denying(math.MaxInt64, math.MaxInt)
	p := perHour(t, "p", 1)
	for range 20 {
		takeAll(t, s, charge(p, "k", 2)) // never passes
		takeAll(t, s, charge(p, strings.Repeat("k", 2), 2))
	}
	if inner.calls != 2 {
		t.Errorf("%d calls, want one for each key", inner.calls)
	}
}
