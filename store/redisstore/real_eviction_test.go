package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// A full server that throws keys out gives no errors, and no wrong answers but
// one: a key that was thrown out is new again, and lets its whole limit through.
func TestEvictedKeysAreNew(t *testing.T) {
	t.Parallel()
	n := full(t, "allkeys-lru")
	p, q := lasting(t, "p", 2), lasting(t, "q", 3)
	const victims = 20
	for i := range victims {
		wantPasses(t, n.store, p, "victim"+strconv.Itoa(i), true, true, false)
	}
	n.fill(func(i int) error {
		var used [2]int64
		for call := range 4 {
			rs, err := takeGroup(n.store, "group"+strconv.Itoa(i), p, q)
			if err != nil {
				return err
			}
			if !evictedOrNot(&used, rs) {
				return fmt.Errorf("group %d, call %d: %v were used, and the answer is %+v", i, call+1, used, rs)
			}
		}
		return nil
	})
	evicted := 0
	for i := range victims {
		key := "victim" + strconv.Itoa(i)
		if n.do("EXISTS", "weir:{"+key+"}:"+p.ID()) == int64(1) {
			wantPasses(t, n.store, p, key, false)
			continue
		}
		evicted++
		wantPasses(t, n.store, p, key, true)
	}
	if evicted == 0 {
		t.Error("no key of 20 was evicted: this test sees nothing")
	}
	t.Logf("%d keys of %d were evicted", evicted, victims)
}

// evictedOrNot tells whether a group's answers are right, where so many units were
// used of each policy, or none if the key was thrown out; and counts them.
func evictedOrNot(used *[2]int64, rs []algorithms.Result) bool {
	for _, before := range [][2]int64{*used, {0, used[1]}, {used[0], 0}, {0, 0}} {
		after, passes := before, before[0] < rs[0].Limit && before[1] < rs[1].Limit
		if passes {
			after[0]++
			after[1]++
		}
		if passes == (!rs[0].Limited && !rs[1].Limited) && rs[0].Remaining == rs[0].Limit-after[0] && rs[1].Remaining == rs[1].Limit-after[1] {
			*used = after
			return true
		}
	}
	return false
}

// With volatile-ttl those go first that end soonest, and were new again soonest.
func TestVolatileTTLSparesLongLimits(t *testing.T) {
	t.Parallel()
	n := full(t, "volatile-ttl")
	long, short := gcra(t, "long", algorithms.PerDay(1)), gcra(t, "short", algorithms.PerMinute(1))
	const keys = 100
	for i := range keys {
		wantPasses(t, n.store, long, strconv.Itoa(i), true)
	}
	n.fill(func(i int) error {
		_, err := store.Take(t.Context(), n.store, short, strconv.Itoa(i), 1)
		return err
	})
	for i := range keys {
		wantPasses(t, n.store, long, strconv.Itoa(i), false)
	}
}

// full is a server that is about to throw out keys.
func full(t *testing.T, policy string) *node {
	t.Helper()
	n := newNode(t, trouble{args: []string{"--maxmemory-policy", policy}})
	n.charge() // the client and its scripts are there
	n.do("CONFIG", "SET", "maxmemory", n.info("used_memory:")+500_000)
	return n
}

// info is a number that INFO tells.
func (n *node) info(name string) int {
	n.Helper()
	_, rest, _ := strings.Cut(n.do("INFO").(string), name)
	digits, _, _ := strings.Cut(rest, "\r\n")
	number, err := strconv.Atoi(digits)
	if err != nil {
		n.Fatalf("%s %q", name, digits)
	}
	return number
}

// fill makes calls until the server has thrown out 1000 keys.
func (n *node) fill(call func(i int) error) {
	n.Helper()
	for from := 0; n.info("evicted_keys:") < 1000; from += 1000 {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := from + g; i < from+1000; i += 4 {
					if err := call(i); err != nil {
						n.Error(err)
						return
					}
				}
			})
		}
		if wg.Wait(); n.Failed() || from > 100_000 {
			n.Fatalf("%d keys, %d are evicted", from, n.info("evicted_keys:"))
		}
	}
}
