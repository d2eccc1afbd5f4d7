package algorithms_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// The text: a client that is far over the limit is put on a list, and refused for
// a time without being counted. Here 20 refusals within a minute ban a client for
// an hour. The ban is asked and charged in the same decision as the limit.
func seedBan(t *testing.T) {
	perSecond := seedPolicy(t, "api", algorithms.GCRA{}, algorithms.PerSecond(10))
	ban, err := algorithms.Ban{Strikes: 20, Within: time.Minute, For: time.Hour}.Policy("ban")
	if err != nil {
		t.Fatal(err)
	}
	everywhere(t, func(t *testing.T, p place) {
		call := func(client string) (bool, []algorithms.Result) {
			return p.group(t,
				store.Charge{Policy: perSecond, Key: client, Cost: 1},
				store.Charge{Policy: ban, Key: client, Cost: 1, Mode: store.Strike})
		}
		for i := range 29 {
			if ok, _ := call("c1"); ok != (i < 10) {
				t.Errorf("call %d: passed is %v; want 10 to pass and 19 refusals", i+1, ok)
			}
		}
		p.Advance(time.Second)
		for i := range 11 {
			if ok, r := call("c1"); ok != (i < 10) {
				t.Errorf("call %d a second later: passed is %v, %+v; with 19 strikes there is no ban yet", i+1, ok, r)
			}
		}
		// That was the 20th refusal. The limit has room again, the ban has not.
		began := p.Now()
		for _, after := range []time.Duration{time.Second, time.Minute, time.Hour - time.Microsecond} {
			p.Set(began.Add(after))
			ok, r := call("c1")
			if ok || r[0].Limited || r[0].Remaining != 10 || r[1].RetryAfter != time.Hour-after {
				t.Errorf("%v after the ban began: passed is %v, %+v", after, ok, r)
			}
			if ok, _ := call("c2"); !ok {
				t.Error("another client is banned too")
			}
		}
		p.Set(began.Add(time.Hour))
		for i := range 11 {
			if ok, _ := call("c1"); ok != (i < 10) {
				t.Errorf("call %d after the ban: passed is %v", i+1, ok)
			}
		}
	})
}

// The text: get the count, compare it with the limit, set it to one more. Between
// the first step and the last others do the same, and all of them pass. A barrier
// forces that here: nobody sets before everybody has got.
func seedRace(t *testing.T) {
	const callers, allowed = 40, 5
	// together has all callers run at once and counts those that pass.
	together := func(call func() bool) (passed int64) {
		var start, end sync.WaitGroup
		var n atomic.Int64
		start.Add(callers)
		for range callers {
			end.Go(func() {
				start.Done()
				start.Wait()
				if call() {
					n.Add(1)
				}
			})
		}
		end.Wait()
		return n.Load()
	}
	// naive gets, checks and sets, each of which is safe by itself.
	naive := func(get func() int, set func(int)) func() bool {
		var got sync.WaitGroup
		got.Add(callers)
		return func() bool {
			count := get()
			got.Done()
			got.Wait()
			if count >= allowed {
				return false
			}
			set(count + 1)
			return true
		}
	}
	policy := seedPolicy(t, "p", algorithms.FixedWindow{}, algorithms.PerMinute(allowed))
	everywhere(t, func(t *testing.T, p place) {
		var count atomic.Int64
		get, set := func() int { return int(count.Load()) }, func(n int) { count.Store(int64(n)) }
		if p.redis != nil {
			ctx := context.Background()
			get = func() int {
				n, _ := strconv.Atoi(p.redis.Get(ctx, "naive").Val())
				return n
			}
			set = func(n int) { p.redis.Set(ctx, "naive", n, time.Minute) }
		}
		if passed := together(naive(get, set)); passed != callers || get() != 1 {
			t.Errorf("get, check and set let %d of %d through and counted %d; by the barrier it is all, counted as one", passed, callers, get())
		}
		passed := together(func() bool {
			r, err := store.Take(context.Background(), p, policy, "k", 1)
			if err != nil {
				t.Error(err)
			}
			return err == nil && !r.Limited
		})
		if passed != allowed {
			t.Errorf("Take let %d of %d through, want %d", passed, callers, allowed)
		}
	})
}
