package adapters_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// failureCases are those about a store that is away. They run in bubbles, where no
// time passes but what is waited for, and nothing may be left at the end.
func failureCases(t *testing.T) {
	t.Run("SF-01", sf01)
	t.Run("SF-02", sf02)
	t.Run("SF-03", sf03)
	t.Run("SF-05", sf05)
	t.Run("SF-06", sf06)
	t.Run("SF-08", sf08)
	t.Run("SF-09", sf09)
}

// eachPolicy runs test in a bubble for each framework and policy.
func eachPolicy(t *testing.T, test func(t *testing.T, serve func(app) http.Handler, policy string)) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for _, policy := range []string{"open", "closed"} {
			t.Run(policy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, serve, policy) })
			})
		}
	})
}

// sf01 has connections refused: nobody is told that he asked too often.
func sf01(t *testing.T) {
	eachPolicy(t, func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := miniNetwork(t)
		s := n.store(t)
		n.set(true)
		a := newAway(t, serve, guard(s, policy, time.Second, nil), 5)
		for range 20 {
			wantAway(t, policy, a.get(t))
		}
		if want := map[string]int64{"open": 0, "closed": 20}[policy]; a.failed.Load() != want {
			t.Errorf("%d failures told, want %d", a.failed.Load(), want)
		}
	})
}

// sf02 has a server that takes connections and is silent.
func sf02(t *testing.T) {
	eachPolicy(t, func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := &network{serve: silent}
		var told atomic.Int64
		s := guard(n.store(t), policy, 5*time.Second, func(context.Context, error) { told.Add(1) })
		a := newAway(t, serve, s, 5)
		for round := range 10 {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					start := time.Now()
					wantAway(t, policy, a.get(t))
					// The first 20 are under way before the breaker knows.
					if took := time.Since(start); round == 0 && took != 50*time.Millisecond || round > 0 && took != 0 {
						t.Errorf("round %d: took %v", round, took)
					}
				})
			}
			all.Wait()
		}
		if policy == "open" && (told.Load() != 200 || a.ran.Load() != 200) {
			t.Errorf("%d told, %d served, want 200", told.Load(), a.ran.Load())
		}
	})
}

// sf03 builds a limiter while the store is away.
func sf03(t *testing.T) {
	eachPolicy(t, func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := miniNetwork(t)
		s := n.store(t)
		n.set(true)
		a := newAway(t, serve, guard(s, policy, time.Second, nil), 2)
		for range 6 { // the breaker opens
			wantAway(t, policy, a.get(t))
		}
		n.set(false)
		wantAway(t, policy, a.get(t)) // it cools down
		time.Sleep(time.Second + 1) // the cool-down is over
		for i, status := range []int{200, 200, 429, 429} {
			if w := a.get(t); w.Code != status {
				t.Errorf("back, request %d: %d, want %d", i, w.Code, status)
			}
		}
	})
}

// sf05 has memory count while the store is away, in each process for itself.
func sf05(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		synctest.Test(t, func(t *testing.T) {
			n := miniNetwork(t)
			shared := n.store(t)
			n.set(true)
			for process := range 2 {
				var told atomic.Int64
				a := newAway(t, serve, store.Fallback(guard(shared, "closed", time.Second, nil),
					memstore.New(memstore.Config{}), func(context.Context, error) { told.Add(1) }), 5)
				for i, status := range []int{200, 200, 200, 200, 200, 429, 429, 429} {
					w := a.get(t)
					if w.Code != status {
						t.Errorf("process %d, request %d: %d, want %d", process, i, w.Code, status)
					}
					wantRateHeaders(t, w.Header(), "")
				}
				if told.Load() != 8 {
					t.Errorf("%d failures told, want 8", told.Load())
				}
			}
		})
	})
}

// sf06 has the store come back, which must not hear of what it missed.
func sf06(t *testing.T) {
	for _, policy := range []string{"open", "fallback"} {
		t.Run(policy, func(t *testing.T) {
			each(t, func(t *testing.T, serve func(app) http.Handler) {
				synctest.Test(t, func(t *testing.T) {
					n := miniNetwork(t)
					inRedis := n.store(t)
					s := guard(inRedis, policy, time.Second, nil)
					if policy == "fallback" {
						s = store.Fallback(s, memstore.New(memstore.Config{}), nil)
					}
					a := newAway(t, serve, s, 10)
					n.set(true)
					for i := range 8 {
						if w := a.get(t); w.Code != 200 {
							t.Errorf("away, request %d: %d", i, w.Code)
						}
					}
					n.set(false)
					time.Sleep(time.Second + 1) // the cool-down is over
					for _, left := range []string{"9", "8", "7"} { // of 10: three are counted
						w := a.get(t)
						if w.Code != 200 {
							t.Errorf("back: %d", w.Code)
						}
						wantRateHeaders(t, w.Header(), left)
					}
				})
			})
		})
	}
}

// sf08 has a store that always fails, of any kind.
func sf08(t *testing.T) {
	eachPolicy(t, func(t *testing.T, serve func(app) http.Handler, policy string) {
		for _, err := range []error{errors.New("away"), context.DeadlineExceeded, context.Canceled, memstore.ErrFull} {
			a := newAway(t, serve, guard(failing{err}, policy, time.Second, nil), 5)
			wantAway(t, policy, a.get(t))
			if want := map[string]int64{"open": 1, "closed": 0}[policy]; a.ran.Load() != want {
				t.Errorf("%v: the handler ran %d times, want %d", err, a.ran.Load(), want)
			}
		}
	})
}

type failing struct{ err error }

func (failing) Validate(...*algorithms.Policy) error { return nil }

func (f failing) Take(context.Context, []store.Charge, []algorithms.Result) error { return f.err }

// sf09 has a server that says the same for ever, also to what would heal it.
func sf09(t *testing.T) {
	for _, reply := range []string{"NOSCRIPT No matching script.", "READONLY You can't write against a read only replica."} {
		t.Run(reply[:8], func(t *testing.T) {
			eachPolicy(t, func(t *testing.T, serve func(app) http.Handler, policy string) {
				var scripts atomic.Int64
				n := &network{serve: stubborn(reply, &scripts)}
				a := newAway(t, serve, guard(n.store(t), policy, time.Second, nil), 5)
				wantAway(t, policy, a.get(t))
				if got := scripts.Load(); got < 1 || got > 2 {
					t.Errorf("%d commands for a call, want 1 or 2", got)
				}
				for range 100 {
					wantAway(t, policy, a.get(t))
				}
				if got := scripts.Load(); got > 5*2 { // and then the breaker is open
					t.Errorf("%d commands for 101 calls, want 10 at most", got)
				}
				time.Sleep(time.Second + 1) // the cool-down is over
				before := scripts.Load()
				for range 3 {
					wantAway(t, policy, a.get(t))
				}
				if got := scripts.Load() - before; got < 1 || got > 2 {
					t.Errorf("%d commands after the cool-down, want those of one call", got)
				}
			})
		})
	}
}
