package store_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// wait is Wait, or After by somebody who waits for it.
type wait = func(ctx context.Context, s store.Store, p *algorithms.Policy, key string, cost int64) error

// waits runs a test for each form of waiting, in fake time. Where f were called
// by After itself or called twice, its send would never end.
func waits(t *testing.T, run func(t *testing.T, w wait)) {
	t.Run("Wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { run(t, store.Wait) })
	})
	t.Run("After", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			run(t, func(ctx context.Context, s store.Store, p *algorithms.Policy, key string, cost int64) error {
				over := make(chan error)
				store.After(ctx, s, p, key, cost, func(err error) { over <- err })
				return <-over
			})
		})
	})
}

func limited(t *testing.T, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// everyTen lets one through each ten seconds.
func everyTen(t *testing.T) *algorithms.Policy {
	t.Helper()
	return limited(t, algorithms.Limit{Count: 1, Period: 10 * time.Second})
}

func take(t *testing.T, s store.Store, p *algorithms.Policy, cost int64) algorithms.Result {
	t.Helper()
	r, err := store.Take(context.Background(), s, p, "k", cost)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answers is a store that says what it is told to, call by call.
type answers struct {
	mu    sync.Mutex
	calls int
	take  func(ctx context.Context, n int) (algorithms.Result, error)
}

func (*answers) Validate(...*algorithms.Policy) error { return nil }

func (a *answers) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := store.Check(ctx, charges, results); err != nil {
		return err
	}
	a.mu.Lock()
	n := a.calls
	a.calls++
	a.mu.Unlock()
	r, err := a.take(ctx, n)
	results[0] = r
	return err
}

func refusal(d time.Duration) algorithms.Result {
	return algorithms.Result{Limited: true, Limit: 1, RetryAfter: d, ResetAfter: d}
}
