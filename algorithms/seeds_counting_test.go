package algorithms_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// The text: a sorted set for each user and action keeps the times of what the user
// did as scores. Each call adds a member, throws out those older than the period
// and counts the rest; at most 5 in 60 s pass. The call is added before it is
// counted, so that the refused ones count too: who goes on asking never gets in
// again, and the set grows with every refusal. It has one member for each call,
// named by its millisecond; two in the same one are counted as one.
func seedSortedSet(t *testing.T) {
	policy := seedPolicy(t, "reply", algorithms.SlidingLog{}, limit{Count: 5, Period: time.Minute})
	everywhere(t, func(t *testing.T, p place) {
		members := func(want int64) {
			t.Helper()
			if p.redis == nil {
				return
			}
			ctx, key := context.Background(), "weir:{u1:reply}:reply:sliding-log"
			if kind := p.redis.Type(ctx, key).Val(); kind != "zset" {
				t.Errorf("%s is a %s, want a zset", key, kind)
			}
			if n := p.redis.ZCard(ctx, key).Val(); n != want {
				t.Errorf("%d members, want %d", n, want)
			}
			if left := p.redis.PTTL(ctx, key).Val(); left != time.Minute {
				t.Errorf("the set lives for %v, want one minute from the last that was let in", left)
			}
			if n := p.redis.DBSize(ctx).Val(); n != 1 {
				t.Errorf("%d keys, want 1", n)
			}
		}
		// Two at 0:00, three at 0:10, and fifteen more are refused.
		p.burst(t, policy, "u1:reply", 1, 1)
		members(1)
		p.burst(t, policy, "u1:reply", 1, 1)
		members(2)
		p.Advance(10 * time.Second)
		p.burst(t, policy, "u1:reply", 18, 3)
		members(5)
		// Who goes on asking is refused all along, and let in on the microsecond.
		for range 49 {
			p.Advance(time.Second)
			p.burst(t, policy, "u1:reply", 1, 0)
		}
		p.Advance(time.Second - time.Microsecond)
		p.burst(t, policy, "u1:reply", 1, 0)
		p.Advance(time.Microsecond)
		p.burst(t, policy, "u1:reply", 20, 2) // 1:00
		members(5)
		p.Advance(10 * time.Second)
		p.burst(t, policy, "u1:reply", 20, 3) // 1:10
		members(5)
	})
}

// The text: INCR on a key named by the interface, and EXPIRE when the answer is 1,
// allow 100 calls in 10 s; with the user in the key as well, each user has a limit
// of their own. Between INCR and EXPIRE a process can die, and the key then stays
// for ever; a refused call is counted too, and where both keys are used one has
// gone up when the other refuses. Here 250 calls in 10 s are allowed to all and 100
// to each user, as one group.
func seedCounter(t *testing.T) {
	perInterface := seedPolicy(t, "interface", algorithms.FixedWindow{}, limit{Count: 250, Period: 10 * time.Second})
	perUser := seedPolicy(t, "user", algorithms.FixedWindow{}, limit{Count: 100, Period: 10 * time.Second})
	everywhere(t, func(t *testing.T, p place) {
		// calls is how many of 120 calls pass, and the answers to the last.
		calls := func(user string) (passed int, last []algorithms.Result) {
			for range 120 {
				ok, results := p.group(t,
					store.Charge{Policy: perInterface, Key: "GET /orders", Cost: 1},
					store.Charge{Policy: perUser, Key: "GET /orders:" + user, Cost: 1})
				if ok {
					passed++
				}
				last = results
			}
			return passed, last
		}
		const pause = 4 * time.Second
		for _, round := range []string{"first", "second"} {
			for i, want := range []struct {
				passed   int
				ofAll    int64 // what remains of the interface's 250
				ofUser   int64 // and of the user's 100
				refusing int   // which of the two refuses
			}{{100, 150, 0, 1}, {100, 50, 0, 1}, {50, 0, 50, 0}} {
				passed, r := calls(fmt.Sprint("u", i))
				if passed != want.passed || r[0].Remaining != want.ofAll || r[1].Remaining != want.ofUser ||
					!r[want.refusing].Limited || r[1-want.refusing].Limited {
					t.Errorf("%s round, user %d: %d passed, the last is answered %+v; want %+v", round, i, passed, r, want)
				}
				if i == 0 {
					p.Advance(pause)
				}
			}
			if p.redis != nil {
				ctx := context.Background()
				for key, want := range map[string]time.Duration{
					"weir:{GET /orders}:interface:fixed-window": 10*time.Second - pause,
					"weir:{GET /orders:u0}:user:fixed-window":   10*time.Second - pause,
					"weir:{GET /orders:u1}:user:fixed-window":   10 * time.Second,
				} {
					if left := p.redis.PTTL(ctx, key).Val(); left != want {
						t.Errorf("%s lives for %v, want %v", key, left, want)
					}
				}
			}
			p.Advance(10 * time.Second)
		}
	})
}
