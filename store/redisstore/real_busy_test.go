package redisstore_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// A server that runs somebody's endless script says BUSY until that is killed.
// What waited for it and what was refused is charged once, or not at all.
func TestBusyServer(t *testing.T) {
	t.Parallel()
	const units = 1_000_000
	n := newNode(t, trouble{args: []string{"--busy-reply-threshold", "5"}, errs: []string{"BUSY "}})
	n.charge()
	n.want(true)
	p, q := lasting(t, "p", units), lasting(t, "q", units)
	var alone, groups, failed atomic.Int64
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range 8 {
		wg.Go(func() {
			passed, ps := &alone, []*algorithms.Policy{p}
			if i%2 == 1 {
				passed, ps = &groups, []*algorithms.Policy{p, q}
			}
			for ctx.Err() == nil {
				switch r, err := ask(t.Context(), n.store, "k", ps...); {
				case err == nil && !r.Limited:
					passed.Add(1)
				case !redis.HasErrorPrefix(err, "BUSY ") || !store.IsFailure(t.Context(), err):
					t.Errorf("%+v, %v", r, err)
					return
				default:
					failed.Add(1)
				}
			}
		})
	}
	goesOn := func(what string, count func() int64) {
		t.Helper()
		before := count()
		n.soon(what, func() bool { return count() > before+100 })
	}
	for range 3 {
		goesOn("charges pass", func() int64 { return min(alone.Load(), groups.Load()) })
		other := closing(t, redis.NewClient(&redis.Options{Addr: n.server.Addr, ReadTimeout: -1, MaxRetries: -1}))
		var endless sync.WaitGroup
		endless.Go(func() {
			if err := other.Eval(t.Context(), "while true do end", nil).Err(); err == nil || !strings.Contains(err.Error(), "killed by user") {
				t.Errorf("the endless script: %v", err)
			}
		})
		n.until(func(err error) bool { return redis.HasErrorPrefix(err, "BUSY ") })
		goesOn("calls fail", failed.Load)
		n.want(false)
		n.do("SCRIPT", "KILL")
		endless.Wait()
	}
	stop()
	wg.Wait()
	for policy, passed := range map[*algorithms.Policy]int64{p: alone.Load() + groups.Load(), q: groups.Load()} {
		if charged := units - mustTake(t, n.store, policy, "k", 0).Remaining; charged != passed {
			t.Errorf("%d units of %s are charged, and %d calls passed", charged, policy.Name(), passed)
		}
	}
	n.charge()
	n.spent()
}
