package redisstore_test

import (
	"context"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// openReal gives stores on one redis-server, which each finds empty and by its
// own clock.
func openReal(t *testing.T) casetest.Open {
	t.Helper()
	s := redistest.StartAt(t, storetest.NewClock())
	return func(t *testing.T, clock *storetest.Clock) store.Store {
		s.Do(t, "FLUSHALL")
		s.Follow(t, clock)
		return newStore(t, s.Addr, redisstore.Config{})
	}
}

func TestRealRun(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openReal(t), runOptions(1500))
}

// With a clock of the caller's, life times run by the server's: here it is the
// same.
func TestRealRunByCallersClock(t *testing.T) {
	t.Parallel()
	s := redistest.StartAt(t, storetest.NewClock())
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) store.Store {
		s.Do(t, "FLUSHALL")
		s.Follow(t, clock)
		return newStore(t, s.Addr, redisstore.Config{Clock: clock.Now})
	}, runOptions(500))
}

func TestRealVectors(t *testing.T) {
	t.Parallel()
	casetest.Vectors(t, openReal(t))
}

func TestRealCases(t *testing.T) {
	t.Parallel()
	casetest.Cases(t, openReal(t))
}

func gcra(t testing.TB, name string, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustTake(t testing.TB, s store.Store, p *algorithms.Policy, key string, cost int64) algorithms.Result {
	t.Helper()
	r, err := store.Take(context.Background(), s, p, key, cost)
	if err != nil {
		t.Fatalf("key %q, cost %d: %v", key, cost, err)
	}
	return r
}

// takeGroup takes one unit of each policy for a key.
func takeGroup(s store.Store, key string, policies ...*algorithms.Policy) ([]algorithms.Result, error) {
	charges, results := make([]store.Charge, len(policies)), make([]algorithms.Result, len(policies))
	for i, p := range policies {
		charges[i] = store.Charge{Policy: p, Key: key, Cost: 1}
	}
	return results, s.Take(context.Background(), charges, results)
}

// wantPasses makes charges of one unit and wants these to pass.
func wantPasses(t testing.TB, s store.Store, p *algorithms.Policy, key string, passes ...bool) {
	t.Helper()
	for i, pass := range passes {
		if r := mustTake(t, s, p, key, 1); r.Limited == pass || r.Remaining < 0 {
			t.Errorf("key %q, call %d: %+v; want pass %v", key, i+1, r, pass)
		}
	}
}
