package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

func forgetting(p *algorithms.Policy, key string) store.Charge {
	return store.Charge{Policy: p, Key: key, Mode: store.Forget}
}

// fresh is the result of a look at a key never seen.
func fresh(capacity int64) algorithms.Result {
	return algorithms.Result{Limit: capacity, Remaining: capacity}
}

// checkForget: sentence 15, of charges alone. In the end it forgets the keys of a
// random walk, on which they must be like new.
func (f *fixture) checkForget() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(5))
	for used := int64(0); used <= 5; used++ { // of a key never seen; at last of one that is limited, or banned
		if used > 0 {
			f.one(p, "k", used)
			f.clock.Advance(time.Second) // now to give it all back would be something else
		}
		for range 2 {
			if r := f.take(forgetting(p, "k"))[0]; r != fresh(5) {
				sentence(15).broke(f, "%d of 5 used: %+v", used, r)
			}
		}
		if r := f.one(p, "k", 0); r != fresh(5) {
			sentence(15).broke(f, "%d of 5 used, then forgotten, a look: %+v", used, r)
		}
	}
	// It begins anew at once, and ends at the capacity.
	for i := range 6 {
		if r := f.one(p, "k", 1); r.Limited != (i == 5) || r.Remaining != max(0, 4-int64(i)) {
			sentence(15).broke(f, "call %d of 5 after it was forgotten: %+v", i+1, r)
		}
	}
	// Of other keys and policies nothing is forgotten, and of this one under any
	// limit.
	q, wider := f.policy("q", algorithms.PerMinute(5)), f.policy("p", algorithms.PerMinute(9))
	f.one(p, "l", 2)
	f.one(q, "k", 2)
	if r := f.take(forgetting(wider, "k"))[0]; r != fresh(9) {
		sentence(15).broke(f, "5 used, the limit raised to 9: %+v", r)
	}
	for name, r := range map[string]algorithms.Result{"another key": f.one(p, "l", 0), "another policy": f.one(q, "k", 0)} {
		if r.Remaining != 3 {
			sentence(9).broke(f, "2 of 5 used, and %s forgotten: %+v", name, r)
		}
	}
	if r := f.one(p, "k", 0); r != fresh(5) {
		sentence(15).broke(f, "forgotten under another limit: %+v", r)
	}
	for _, name := range walkNames {
		p := f.policy(name, algorithms.PerMinute(5))
		for i, key := range walkKeys {
			f.one(p, key, 5-int64(i))
			f.clock.Advance(time.Second)
			f.take(forgetting(p, key))
		}
	}
	short := *f
	short.o.Steps = (f.o.Steps + 4) / 5
	short.checkRandom(walk{})
}

// checkForgetInGroups: sentences 3 and 15.
func (f *fixture) checkForgetInGroups() {
	f.Helper()
	wide, narrow, ban := f.policy("wide", algorithms.PerMinute(10)), f.policy("narrow", algorithms.PerMinute(1)), f.policy("ban", algorithms.PerHour(2))
	one := func(p *algorithms.Policy, m store.Mode) store.Charge {
		return store.Charge{Policy: p, Key: "k", Cost: 1, Mode: m}
	}
	// A group that is refused, by a charge or by a ban, forgets nothing. What it
	// would have forgotten is shown as it is, and is not limited.
	f.one(wide, "k", 3)
	f.one(narrow, "k", 1)
	look := f.one(wide, "k", 0)
	full := f.one(narrow, "k", 0)
	full.Limited, full.RetryAfter = false, 0
	for i := range 2 {
		group := []store.Charge{forgetting(wide, "k"), one(narrow, store.Enforce), one(ban, store.Strike), forgetting(wide, "new")}
		rs := f.take(group...)
		if rs[0] != look || !rs[1].Limited || rs[3] != fresh(10) {
			sentence(3).broke(f, "forgotten in a refused group: %+v, a look %+v", rs, look)
		}
		if rs[2].Remaining != int64(1-i) {
			sentence(6).broke(f, "strike %d of 2 beside what is not forgotten: %+v", i+1, rs)
		}
	}
	rs := f.take(one(ban, store.Strike), forgetting(narrow, "k"), one(wide, store.Shadow))
	if !rs[0].Limited || rs[1] != full || rs[2].Limited || rs[2].Remaining != look.Remaining {
		sentence(3).broke(f, "a full key forgotten in a group that a ban refuses: %+v, a look %+v", rs, full)
	}
	for p, left := range map[*algorithms.Policy]int64{wide: 7, narrow: 0, ban: 0} {
		if r := f.one(p, "k", 0); r.Remaining != left {
			sentence(4).broke(f, "after refused groups %d of %s remain, and not %d", r.Remaining, p.Name(), left)
		}
	}
	// A shadow that does not fit does not keep a ban from being lifted, nor does
	// what is forgotten refuse the rest.
	rs = f.take(one(narrow, store.Shadow), forgetting(ban, "k"), one(wide, store.Enforce))
	if rs[1] != fresh(2) || !rs[0].Limited || rs[2].Limited || rs[2].Remaining != 6 {
		sentence(15).broke(f, "a ban lifted beside a charge that fits and a shadow that does not: %+v", rs)
	}
	// Where nothing refuses, no strike is taken, and all are forgotten.
	rs = f.take(forgetting(narrow, "k"), one(ban, store.Strike), forgetting(wide, "k"))
	if rs[0] != fresh(1) || rs[1] != fresh(2) || rs[2] != fresh(10) {
		sentence(15).broke(f, "two forgotten, and a strike: %+v", rs)
	}
	for p, capacity := range map[*algorithms.Policy]int64{wide: 10, narrow: 1, ban: 2} {
		if r := f.one(p, "k", 0); r != fresh(capacity) {
			sentence(15).broke(f, "%s was forgotten: %+v", p.Name(), r)
		}
	}
}

// checkConcurrentForget charges and forgets two keys together, from many
// goroutines.
func (f *fixture) checkConcurrentForget(a, b *algorithms.Policy) {
	f.Helper()
	const callers, calls = 8, 20
	var wg sync.WaitGroup
	var mu sync.Mutex
	apart := 0
	var failed error
	for n := range callers {
		wg.Go(func() {
			results := make([]algorithms.Result, 2)
			for i := range calls {
				group := []store.Charge{{Policy: a, Key: "both", Cost: 1}, {Policy: b, Key: "both", Cost: 1}}
				if (n+i)%4 == 0 {
					group = []store.Charge{forgetting(b, "both"), forgetting(a, "both")}
				}
				err := f.store.Take(context.Background(), group, results)
				mu.Lock()
				if err != nil {
					failed = err
				} else if results[0].Limit-results[0].Remaining != results[1].Limit-results[1].Remaining {
					apart++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failed != nil {
		f.Fatalf("Take: %v", failed)
	}
	if apart != 0 {
		sentence(1).broke(f, "%d groups saw one key forgotten without the other", apart)
	}
}
