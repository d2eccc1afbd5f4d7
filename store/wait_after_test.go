package store_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// After returns at once, however long the store takes.
func TestAfterDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, over := make(chan algorithms.Result), make(chan error, 1)
		s := &answers{take: func(context.Context, int) (algorithms.Result, error) { return <-answer, nil }}
		store.After(t.Context(), s, everyTen(t), "k", 1, func(err error) { over <- err })
		synctest.Wait()
		if s.calls != 1 || len(over) != 0 {
			t.Errorf("%d attempts, %d answers", s.calls, len(over))
		}
		answer <- algorithms.Result{Limit: 1}
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// Who waits costs no goroutine, and a cancelled ctx ends all waits at once.
func TestAfterHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 1000
		s, p := memstore.New(memstore.Config{}), everyTen(t)
		take(t, s, p, 1)
		ctx, cancel := context.WithCancel(t.Context())
		start, calls := time.Now(), atomic.Int64{}
		few := runtime.NumGoroutine() + waiters/4 // it is not exact where many have just ended
		for range waiters {
			store.After(ctx, s, p, "k", 1, func(err error) {
				if calls.Add(1); err != context.Canceled || time.Since(start) != 3*time.Second {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		}
		for range 3 {
			synctest.Wait()
			if n := runtime.NumGoroutine(); n > few || calls.Load() != 0 {
				t.Errorf("%d goroutines, %d calls, while %d wait", n, calls.Load(), waiters)
			}
			time.Sleep(time.Second)
		}
		cancel()
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > few || calls.Load() != waiters {
			t.Errorf("%d goroutines, %d calls of %d, after all", n, calls.Load(), waiters)
		}
		time.Sleep(time.Minute)
		if calls.Load() != waiters {
			t.Errorf("%d calls of %d, after a minute", calls.Load(), waiters)
		}
	})
}

// registry is a ctx that counts the functions registered with it.
type registry struct {
	context.Context
	done chan struct{}
	held atomic.Int64
}

func (r *registry) Done() <-chan struct{} { return r.done }

func (r *registry) AfterFunc(func()) func() bool {
	r.held.Add(1)
	return func() bool { r.held.Add(-1); return true }
}

// A ctx that outlives the wait keeps nothing of it.
func TestAfterLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, ctx := memstore.New(memstore.Config{}), everyTen(t), &registry{Context: t.Context(), done: make(chan struct{})}
		over := make(chan error, 3)
		for _, cost := range []int64{1, 1, 2} { // at once, later, never
			store.After(ctx, s, p, "k", cost, func(err error) { over <- err })
		}
		synctest.Wait()
		if n := ctx.held.Load(); n != 1 || len(over) != 2 {
			t.Errorf("%d functions registered, %d answers, while one waits", n, len(over))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := ctx.held.Load(); n != 0 || len(over) != 3 {
			t.Errorf("%d functions registered, %d answers, at the end", n, len(over))
		}
	})
}

// Without f the charge is made.
func TestAfterWithoutFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := memstore.New(memstore.Config{}), everyTen(t)
		store.After(t.Context(), s, p, "k", 1, nil)
		store.After(t.Context(), nil, p, "k", 1, nil)
		synctest.Wait()
		if r := take(t, s, p, 0); r.Remaining != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Whenever ctx is done, f is called once, and with nil if and only if the charge
// was made. In real time, where timers and goroutines do race.
func TestAfterRaces(t *testing.T) {
	const rounds, pause = 5000, 100 * time.Microsecond
	p := everyTen(t)
	var all sync.WaitGroup
	var in, out, twice, wrong atomic.Int64
	for range rounds {
		// Two refusals, and then the charge is made.
		var made atomic.Bool
		s := &answers{take: func(_ context.Context, n int) (algorithms.Result, error) {
			if n < 2 {
				return refusal(pause), nil
			}
			made.Store(true)
			return algorithms.Result{Limit: 1}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		var calls atomic.Int64
		all.Add(1)
		time.AfterFunc(rand.N(4*pause)-pause, cancel) // for some, at once
		store.After(ctx, s, p, "k", 1, func(err error) {
			if calls.Add(1) > 1 {
				twice.Add(1)
				return
			}
			defer all.Done()
			if err == nil {
				in.Add(1)
			} else {
				out.Add(1)
			}
			if (err == nil) != made.Load() || err != nil && err != context.Canceled {
				wrong.Add(1)
			}
		})
	}
	all.Wait()
	if twice.Load() != 0 || wrong.Load() != 0 {
		t.Errorf("of %d rounds, %d called f again, %d with the wrong error", rounds, twice.Load(), wrong.Load())
	}
	if in.Load() < rounds/100 || out.Load() < rounds/100 {
		t.Errorf("%d let in, %d cancelled: not a test", in.Load(), out.Load())
	}
}

// glance is a ctx that is cancelled right after it was seen not to be for the
// nth time. Then all who hear of it do what they do, and only then does who looked
// go on.
type glance struct {
	context.Context
	cancel func()
	n      int64
	seen   atomic.Int64
}

func (g *glance) Err() error {
	err := g.Context.Err()
	if g.seen.Add(1) == g.n {
		g.cancel()
		time.Sleep(time.Nanosecond)
	}
	return err
}

// Wherever between two steps ctx is done, the wait ends at once.
func TestAfterCancelledBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &answers{take: func(context.Context, int) (algorithms.Result, error) { return refusal(time.Second), nil }}
		for n := int64(1); n <= 2; n++ { // the store looks at ctx, and then After
			ctx, cancel := context.WithCancel(t.Context())
			g := &glance{Context: ctx, cancel: cancel, n: n}
			over := make(chan error, 2)
			store.After(g, s, everyTen(t), "k", 1, func(err error) { over <- err })
			time.Sleep(time.Millisecond)
			if g.seen.Load() < n {
				t.Fatalf("nobody looked for the time %d: not a test", n)
			}
			if len(over) != 1 {
				t.Errorf("cancelled after look %d: f was called %d times", n, len(over))
			}
			time.Sleep(time.Minute)
			if err := <-over; err != context.Canceled || len(over) != 0 {
				t.Errorf("cancelled after look %d: %v, and %d calls more", n, err, len(over))
			}
		}
	})
}

// At the very moment at which a charge fits, either it is made or the wait is
// cancelled.
func TestAfterCancelledInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 500 {
			s, p := memstore.New(memstore.Config{}), everyTen(t)
			take(t, s, p, 1)
			ctx, cancel := context.WithCancel(t.Context())
			var over []error
			var mu sync.Mutex
			store.After(ctx, s, p, "k", 1, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				over = append(over, err)
			})
			time.AfterFunc(10*time.Second, cancel)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			made := take(t, s, p, 0).Limited
			if len(over) != 1 || (over[0] == nil) != made {
				t.Fatalf("charged %v, f was called with %v", made, over)
			}
			time.Sleep(time.Minute)
			if len(over) != 1 {
				t.Fatalf("f was called with %v", over)
			}
		}
	})
}
