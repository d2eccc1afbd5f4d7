package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

const minute = time.Minute

// checkGroup: sentences 1, 3 and 4.
func (f *fixture) checkGroup() {
	f.Helper()
	a, b, c, d := f.policy("a", algorithms.PerMinute(5)), f.policy("b", algorithms.PerMinute(4)), f.policy("c", algorithms.PerMinute(1)), f.policy("d", algorithms.PerMinute(3))
	group := func() []store.Charge {
		return []store.Charge{{Policy: a, Key: "k", Cost: 2}, {Policy: b, Key: "k", Cost: 1}, {Policy: c, Key: "k", Cost: 1}, {Policy: d, Key: "k", Cost: 1}}
	}
	left := func(rs []algorithms.Result) (n [4]int64) {
		for i, r := range rs {
			n[i] = r.Remaining
		}
		return n
	}
	if rs := f.take(group()...); left(rs) != [4]int64{3, 3, 0, 2} || rs[0].Limited || rs[1].Limited || rs[2].Limited || rs[3].Limited {
		sentence(1).broke(f, "four charges that fit: %+v", rs)
	}
	for range 3 {
		rs := f.take(group()...)
		if !rs[2].Limited {
			sentence(1).broke(f, "the third charge does not fit: %+v", rs)
		}
		for _, i := range []int{0, 1, 3} {
			if rs[i].Limited || rs[i].RetryAfter != 0 {
				sentence(3).broke(f, "charge %d fits, and the third does not: %+v", i, rs[i])
			}
		}
		if left(rs) != [4]int64{3, 3, 0, 2} {
			sentence(3).broke(f, "a refused group shows %v", left(rs))
		}
	}
	if n := f.one(a, "k", 0).Remaining; n != 3 {
		sentence(4).broke(f, "after refused groups %d remain of 3", n)
	}
	// On keys never seen, a refused group leaves nothing.
	fresh := group()
	for i := range fresh {
		fresh[i].Key = "fresh"
	}
	fresh[2].Cost = 2
	if rs := f.take(fresh...); left(rs) != [4]int64{5, 4, 1, 3} {
		sentence(4).broke(f, "a refused group on keys never seen shows %v", left(rs))
	}
	if r := f.one(a, "fresh", 0); r.Remaining != 5 || r.ResetAfter != 0 {
		sentence(4).broke(f, "a refused group made a key: %+v", r)
	}
	// A give-back in a group that is refused is not made, and does not refuse.
	f.one(c, "full", 1)
	f.one(a, "full", 5)
	rs := f.take(store.Charge{Policy: a, Key: "full", Cost: -2}, store.Charge{Policy: c, Key: "full", Cost: 1})
	if rs[0].Limited || rs[0].Remaining != 0 || !rs[1].Limited {
		sentence(7).broke(f, "given back in a refused group: %+v", rs)
	}
	if n := f.one(a, "full", 0).Remaining; n != 0 {
		sentence(1).broke(f, "a refused group gave back %d", n)
	}
}

// checkModes: sentences 5 and 6.
func (f *fixture) checkModes() {
	f.Helper()
	wide, narrow, ban := f.policy("wide", algorithms.PerMinute(10)), f.policy("narrow", algorithms.PerMinute(1)), f.policy("ban", algorithms.PerHour(2))

	for i := range 3 {
		rs := f.take(store.Charge{Policy: narrow, Key: "shadow", Cost: 1, Mode: store.Shadow}, store.Charge{Policy: wide, Key: "shadow", Cost: 1})
		if rs[0].Limited != (i > 0) || rs[1].Limited || rs[1].Remaining != int64(9-i) {
			sentence(5).broke(f, "shadow of 1, group %d: %+v", i+1, rs)
		}
	}
	group := []store.Charge{{Policy: ban, Key: "s", Cost: 1, Mode: store.Strike}, {Policy: narrow, Key: "s", Cost: 1}}
	want := []struct {
		left    int64 // of the ban's two strikes
		banned  bool
		limited bool
	}{{2, false, false}, {1, false, true}, {0, false, true}, {0, true, true}, {0, true, true}}
	for i, w := range want {
		rs := f.take(group...)
		if rs[0].Remaining != w.left || rs[0].Limited != w.banned || rs[1].Limited != w.limited {
			sentence(6).broke(f, "two strikes, group %d: %+v", i+1, rs)
		}
	}
	// The ban refuses the rest of the group, and takes no strike for it.
	rs := f.take(store.Charge{Policy: wide, Key: "s", Cost: 1}, store.Charge{Policy: ban, Key: "s", Cost: 1, Mode: store.Strike})
	if rs[0].Limited || rs[0].Remaining != 10 || !rs[1].Limited {
		sentence(1).broke(f, "a strike that is limited as a look must refuse: %+v", rs)
	}
	if n := f.one(wide, "s", 0).Remaining; n != 10 {
		sentence(1).broke(f, "a banned group was charged: %d of 10 remain", n)
	}
	// A strike that asks for more than remains takes what there is.
	f.one(narrow, "t", 1)
	rs = f.take(store.Charge{Policy: ban, Key: "t", Cost: 9, Mode: store.Strike}, store.Charge{Policy: narrow, Key: "t", Cost: 1})
	if rs[0].Remaining != 0 || rs[0].Limited {
		sentence(6).broke(f, "a strike of 9 of 2: %+v", rs)
	}
}

// checkGiveBack: sentence 7.
func (f *fixture) checkGiveBack() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(5))
	if r := f.one(p, "fresh", -3); r.Limited || r.Remaining != 5 || r.ResetAfter != 0 {
		sentence(7).broke(f, "given back to a key never seen: %+v", r)
	}
	f.one(p, "k", 4)
	if r := f.one(p, "k", -1); r.Remaining != 2 {
		sentence(7).broke(f, "4 of 5 taken and 1 given back: %+v", r)
	}
	if r := f.one(p, "k", -100); r.Remaining != 5 || r.ResetAfter != 0 {
		sentence(7).broke(f, "more given back than was taken: %+v", r)
	}
	f.one(p, "old", 5)
	if r := f.take(store.Charge{Policy: p, Key: "old", Cost: -5, Age: 2 * minute})[0]; r.Limited || r.Remaining != 0 {
		sentence(7).broke(f, "what was taken long ago counts no more, and yet comes back: %+v", r)
	}
}

// checkLook: sentence 8.
func (f *fixture) checkLook() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(3))
	for used := int64(0); used <= 3; used++ {
		for range 3 {
			if r := f.one(p, "k", 0); r.Remaining != 3-used || r.Limited != (used == 3) {
				sentence(8).broke(f, "%d of 3 used, a look: %+v", used, r)
			}
		}
		if used < 3 {
			f.one(p, "k", 1)
		}
	}
}

// checkState: sentence 9.
func (f *fixture) checkState() {
	f.Helper()
	p, other := f.policy("p", algorithms.PerMinute(3)), f.policy("q", algorithms.PerMinute(3))
	keys := []string{"k", "K", "k ", "{k}", "k:p", "k\x00", "k\xff", "k\xfe", "{", "}", "{}", "\\", "%", "é", "e\u0301"}
	for _, key := range keys {
		if r := f.one(p, key, 2); r.Limited || r.Remaining != 1 {
			sentence(9).broke(f, "key %q is not fresh: %+v", key, r)
		}
	}
	if r := f.one(other, "k", 0); r.Remaining != 3 {
		sentence(9).broke(f, "another policy's name, the same key: %+v", r)
	}
}

// checkMistakes: sentences 11 and 14.
func (f *fixture) checkMistakes() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(5))
	again := f.policy("p", algorithms.PerMinute(7)) // the same state
	good := store.Charge{Policy: p, Key: "k", Cost: 1}
	take := func(results int, charges ...store.Charge) error {
		return f.store.Take(context.Background(), charges, make([]algorithms.Result, results))
	}
	if err := take(2, good, store.Charge{Policy: again, Key: "k", Cost: 1}); !errors.Is(err, store.ErrDuplicate) {
		sentence(11).broke(f, "the same state twice: %v", err)
	}
	for _, bad := range []store.Charge{
		{Key: "x", Cost: 1},
		{Policy: p, Cost: 1},
		{Policy: p, Key: "x", Cost: -1, Age: -1},
		{Policy: p, Key: "x", Cost: 1, Mode: 4},
		{Policy: p, Key: "x", Cost: -1, Mode: store.Strike},
		{Policy: p, Key: "x", Cost: 1, Mode: store.Forget},
		{Policy: p, Key: "x", Cost: -1, Mode: store.Forget},
		{Policy: p, Key: "x", Age: 1, Mode: store.Forget},
	} {
		if mistake := (*algorithms.FieldError)(nil); !errors.As(take(2, good, bad), &mistake) {
			sentence(11).broke(f, "%+v: no FieldError", bad)
		}
	}
	if mistake := (*algorithms.FieldError)(nil); !errors.As(take(1, good, store.Charge{Policy: p, Key: "l", Cost: 1}), &mistake) {
		sentence(14).broke(f, "2 charges, 1 result: no FieldError")
	}
	if err := take(0); err != nil {
		sentence(14).broke(f, "no charges: %v", err)
	}
	if r := f.one(p, "k", 0); r.Remaining != 5 {
		sentence(11).broke(f, "a mistake was charged: %+v", r)
	}
	if err := f.store.Validate(p); err != nil {
		f.Errorf("Validate(%v): %v", p.Name(), err)
	}
}

// checkContext: sentences 12 and 13.
func (f *fixture) checkContext() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(3))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	for range 5 {
		if _, err := store.Take(cancelled, f.store, p, "k", 1); !errors.Is(err, context.Canceled) {
			sentence(12).broke(f, "cancelled: %v", err)
		}
		if _, err := store.Take(late, f.store, p, "k", 1); !errors.Is(err, context.DeadlineExceeded) {
			sentence(12).broke(f, "past its deadline: %v", err)
		}
	}
	for i := range 4 {
		if r := f.one(p, "k", 1); r.Limited != (i == 3) {
			sentence(12).broke(f, "call %d of 3 after calls that were cancelled: %+v", i+1, r)
		}
	}
}

// checkSlices: sentence 14.
func (f *fixture) checkSlices() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(3))
	charges, results := make([]store.Charge, 1), make([]algorithms.Result, 1)
	for _, key := range []string{"a", "b", "c"} {
		charges[0] = store.Charge{Policy: p, Key: key, Cost: 2}
		if err := f.store.Take(context.Background(), charges, results); err != nil || results[0].Remaining != 1 {
			sentence(14).broke(f, "slices used again: %+v, %v", results[0], err)
		}
		charges[0], results[0] = store.Charge{}, algorithms.Result{}
	}
	if r := f.one(p, "a", 0); r.Remaining != 1 {
		sentence(14).broke(f, "slices used again: %+v", r)
	}
}

// checkConcurrent: sentence 1, from many goroutines: exactly the limit passes,
// and two keys that are only charged, or forgotten, together are never seen apart.
func (f *fixture) checkConcurrent() {
	f.Helper()
	const callers, calls, limit = 16, 20, 100
	a, b := f.policy("a", algorithms.PerHour(limit)), f.policy("b", algorithms.PerHour(2*limit))
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed, apart := 0, 0
	var failed error
	for n := range callers {
		wg.Go(func() {
			group := []store.Charge{{Policy: a, Key: "k", Cost: 1}, {Policy: b, Key: "k", Cost: 1}}
			if n%2 == 1 {
				group[0], group[1] = group[1], group[0] // the order is no matter
			}
			results := make([]algorithms.Result, 2)
			for range calls {
				err := f.store.Take(context.Background(), group, results)
				mu.Lock()
				if err != nil {
					failed = err
				} else if !results[0].Limited && !results[1].Limited {
					passed++
				}
				if d := results[n%2].Remaining + limit - results[1-n%2].Remaining; d != 0 {
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
	if passed != limit || apart != 0 {
		sentence(1).broke(f, "%d groups of %d passed; %d saw one charge without the other", passed, limit, apart)
	}
	f.checkConcurrentForget(a, b)
}

func describe(charges []store.Charge) string {
	s := ""
	for _, c := range charges {
		s += fmt.Sprintf("{%s %v key %.100q cost %d age %v %v} ", c.Policy.Name(), c.Policy.Limit(), c.Key, c.Cost, c.Age, c.Mode)
	}
	return s
}
