package adapters_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
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
// time passes but what is waited for, and nothing may be left at the end. Those in
// which a server stops and starts, or refuses writes, run on a real one besides.
func failureCases(t *testing.T) {
	t.Run("SF-01", sf01)
	t.Run("SF-02", sf02)
	t.Run("SF-03", sf03)
	t.Run("SF-05", sf05)
	t.Run("SF-06", sf06)
	t.Run("SF-07", sf07)
	t.Run("SF-08", sf08)
	t.Run("SF-09", sf09)
	t.Run("RL-05", rl05)
	t.Run("RL-12", rl12)
}

// eachPolicy runs test in a bubble for each framework and policy.
func eachPolicy(t *testing.T, policies []string, test func(t *testing.T, serve func(app) http.Handler, policy string)) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for _, policy := range policies {
			t.Run(policy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, serve, policy) })
			})
		}
	})
}

// sf01 has connections refused: nobody is told that he asked too often.
func sf01(t *testing.T) {
	eachPolicy(t, policies[:4], func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := miniNetwork(t)
		s := n.store(t)
		n.set(true)
		newAway(t, serve, s, guarded{policy: policy, count: 5}).wantAway(t, policy, 20)
	})
}

// sf02 has a server that takes connections and is silent. Without a time limit for
// the store nothing can be promised of that.
func sf02(t *testing.T) {
	eachPolicy(t, policies[:3], func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := &network{serve: silent}
		a := newAway(t, serve, n.store(t), guarded{policy: policy, count: 5, cooldown: 5 * time.Second})
		before := goroutines()
		// twenty gives how many of twenty at a time waited, for 50 ms; the rest did not.
		twenty := func() int64 {
			var waited atomic.Int64
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					start := time.Now()
					wantAway(t, policy, a.get(t))
					switch took := time.Since(start); took {
					case 50 * time.Millisecond:
						waited.Add(1)
					case 0:
					default:
						t.Errorf("a request took %v", took)
					}
				})
			}
			all.Wait()
			return waited.Load()
		}
		for round := range 10 {
			want := int64(0)
			if round == 0 { // they are under way before the breaker knows
				want = 20
			}
			if got := twenty(); got != want {
				t.Errorf("round %d: %d waited, want %d", round, got, want)
			}
		}
		if told, ran := len(a.told()), a.ran.Load(); told != 200 || (ran == 200) != opens(policy) {
			t.Errorf("told of %d failures of 200, %d served", told, ran)
		}
		time.Sleep(time.Second)
		if after := goroutines(); after != before {
			t.Errorf("%d goroutines, %d before", after, before)
		}
		time.Sleep(4*time.Second + 1) // the cool-down is over
		if got := twenty(); got != 1 {
			t.Errorf("after the cool-down %d waited, want the one that tries", got)
		}
	})
}

// goroutines is how many a bubble has, besides those of a silent server.
func goroutines() int {
	synctest.Wait()
	all := make([]byte, 1<<20)
	n := 0
	for one := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		first, _, _ := strings.Cut(one, "\n")
		if strings.Contains(first, "synctest bubble") && !strings.Contains(one, "adapters_test.silent") {
			n++
		}
	}
	return n
}

// sf03 builds a limiter while the store is away, and has it serve before the breaker
// opens and after.
func sf03(t *testing.T) {
	eachPolicy(t, policies[:4], func(t *testing.T, serve func(app) http.Handler, policy string) {
		for _, calls := range []int{1, 6} {
			n := miniNetwork(t)
			s := n.store(t)
			n.set(true)
			a := newAway(t, serve, s, guarded{policy: policy, count: 2})
			a.wantAway(t, policy, calls)
			n.set(false)
			time.Sleep(time.Second + 1) // the cool-down is over
			a.wantStatuses(t, 200, 200, 429, 429)
		}
	})
	t.Run("long", sf03Long)
	t.Run("real", sf03Real)
}

// sf03Long has the store away for so long that go-redis itself, after as many errors
// as its pool has places, only looks once a second whether it is there: the try at the
// end of a cool-down can come before that, and then it is the next one that succeeds.
func sf03Long(t *testing.T) {
	eachPolicy(t, policies[:4], func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := miniNetwork(t)
		s := n.store(t)
		n.set(true)
		a := newAway(t, serve, s, guarded{policy: policy, count: 2})
		for range 600 {
			a.wantAway(t, policy, 1)
			time.Sleep(100 * time.Millisecond)
		}
		n.set(false)
		back := time.Now()
		for a.get(t).Header().Get("X-RateLimit-Limit") == "" && time.Since(back) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(back); took > 2*time.Second {
			t.Errorf("limits are back after %v", took)
		}
		a.wantStatuses(t, 200, 429, 429)
	})
}

// sf05 has memory count while the store is away, in each process for itself.
func sf05(t *testing.T) {
	eachPolicy(t, policies[4:], func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := miniNetwork(t)
		shared := n.store(t)
		n.set(true)
		var processes [2]*away
		for i := range processes {
			processes[i] = newAway(t, serve, shared, guarded{policy: policy, count: 5})
		}
		for _, status := range []int{200, 200, 200, 200, 200, 429, 429, 429} {
			for _, a := range processes {
				a.wantStatuses(t, status)
			}
		}
		told := map[string]int{"memory": 8, "memory by chain": 6}[policy] // the chain remembers the first denial
		for i, a := range processes {
			if got := len(a.told()); got != told {
				t.Errorf("process %d: told of %d failures, want %d", i, got, told)
			}
		}
	})
}

// sf06 has the store come back, which must not hear of what it missed.
func sf06(t *testing.T) {
	eachPolicy(t, []string{"open", "open by chain", "memory", "memory by chain"}, func(t *testing.T, serve func(app) http.Handler, policy string) {
		n := miniNetwork(t)
		a := newAway(t, serve, n.store(t), guarded{policy: policy, count: 10})
		n.set(true)
		for i := range 8 {
			if w := a.get(t); w.Code != 200 {
				t.Errorf("away, request %d: %d", i, w.Code)
			}
		}
		n.set(false)
		time.Sleep(time.Second + 1) // the cool-down is over
		a.wantStatuses(t, 200, 200, 200)
		time.Sleep(time.Second)
		wantCount(t, n.store(t), a.policy, 3)
	})
	t.Run("real", sf06Real)
}

// wantCount wants so many requests to be counted in s.
func wantCount(t *testing.T, s store.Store, p *algorithms.Policy, n int64) {
	t.Helper()
	look, err := store.Take(t.Context(), s, p, "203.0.113.7", 0)
	if got := look.Limit - look.Remaining; err != nil || look.Limit == 0 || got != n {
		t.Errorf("%d requests are counted (%v), want %d", got, err, n)
	}
}

// sf07 has clients that are gone before they are counted. That is no failure of the
// store: nothing passes for it, and no breaker opens.
func sf07(t *testing.T) {
	for name, open := range map[string]func(*testing.T) store.Store{
		"memory": func(t *testing.T) store.Store { return inMemory(t, nil) },
		"redis":  func(t *testing.T) store.Store { return miniNetwork(t).store(t) },
	} {
		t.Run(name, func(t *testing.T) {
			eachPolicy(t, policies, func(t *testing.T, serve func(app) http.Handler, policy string) {
				a := newAway(t, serve, open(t), guarded{policy: policy, count: 3})
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				for range 10 {
					w := httptest.NewRecorder()
					a.ServeHTTP(w, ask{}.request(t).WithContext(gone))
					wantAway(t, "closed", w)
					if told := a.told(); len(told) != 1 || !errors.Is(told[0], context.Canceled) {
						t.Errorf("told of %v, want %v", told, context.Canceled)
					}
				}
				if a.ran.Load() != 0 {
					t.Errorf("%d requests passed", a.ran.Load())
				}
				a.wantStatuses(t, 200, 200, 200, 429)
			})
		})
	}
}

// sf08 has a store that always fails, of any kind.
func sf08(t *testing.T) {
	eachPolicy(t, policies[:4], func(t *testing.T, serve func(app) http.Handler, policy string) {
		for _, err := range []error{errors.New("away"), context.DeadlineExceeded, context.Canceled, memstore.ErrFull} {
			newAway(t, serve, failing{err}, guarded{policy: policy, count: 5}).wantAway(t, policy, 1)
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
			eachPolicy(t, policies[:3], func(t *testing.T, serve func(app) http.Handler, policy string) {
				var scripts atomic.Int64
				n := &network{serve: stubborn(reply, &scripts)}
				a := newAway(t, serve, n.store(t), guarded{policy: policy, count: 5})
				// calls makes some, of which only the first may reach the server.
				calls := func(what string, some int, reach bool) {
					t.Helper()
					for i := range some {
						sent, dialed := scripts.Load(), n.dialed()
						a.wantAway(t, policy, 1)
						sent, dialed = scripts.Load()-sent, n.dialed()-dialed
						if asked := reach && i == 0; (sent > 0) != asked || sent > 2 || dialed > 1 || dialed > 0 && !asked {
							t.Errorf("%s, call %d: %d commands on %d new connections", what, i, sent, dialed)
						}
					}
				}
				for range 5 {
					calls("at first", 1, true)
				}
				calls("open", 96, false)
				time.Sleep(time.Second + 1) // the cool-down is over
				calls("after the cool-down", 10, true)
			})
		})
	}
}
