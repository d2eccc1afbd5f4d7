package adapters_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/redisstore"
)

// eachPolicyReal runs test with a real server for each framework and policy. Time is
// real then: a cool-down is short, and a time limit so long that a slow machine does
// not exceed it.
func eachPolicyReal(t *testing.T, policies []string, args []string, test func(t *testing.T, node *redistest.Server, build func(policy string, count int64) *away, policy string)) {
	node := redistest.Start(t, args...)
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for _, policy := range policies {
			t.Run(policy, func(t *testing.T) {
				node.Do(t, "FLUSHALL")
				test(t, node, func(policy string, count int64) *away {
					return newAway(t, serve, realStore(t, node), guarded{policy: policy, count: count, timeout: time.Minute, cooldown: 10 * time.Millisecond})
				}, policy)
			})
		}
	})
}

func realStore(t *testing.T, node *redistest.Server) store.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: node.Addr, DialerRetries: 1, ContextTimeoutEnabled: true})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantBack polls with looks, which count nothing, until Redis decides again. The
// first that the breaker lets through must succeed: the cool-down is then enough.
func (a *away) wantBack(t *testing.T) {
	t.Helper()
	a.told()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		look, err := store.Take(t.Context(), a.store, a.policy, "203.0.113.7", 0)
		told := a.told()
		if err != nil {
			told = append(told, err)
		}
		for _, why := range told {
			if !errors.Is(why, breaker.ErrOpen) {
				t.Errorf("the server is back: %v", why)
			}
		}
		if len(told) == 0 && look.Limit > 0 {
			return
		}
	}
	t.Fatal("no limits in 20 s")
}

func sf03Real(t *testing.T) {
	eachPolicyReal(t, policies[:4], nil, func(t *testing.T, node *redistest.Server, build func(string, int64) *away, policy string) {
		node.Stop()
		a := build(policy, 2)
		a.wantAway(t, policy, 6)
		if err := node.Restart(); err != nil {
			t.Fatal(err)
		}
		a.wantBack(t)
		a.wantStatuses(t, 200, 200, 429, 429)
	})
}

func sf06Real(t *testing.T) {
	eachPolicyReal(t, []string{"open", "open by chain", "memory", "memory by chain"}, nil, func(t *testing.T, node *redistest.Server, build func(string, int64) *away, policy string) {
		a := build(policy, 10)
		a.wantStatuses(t, 200) // a connection is open; the server forgets the rest
		node.Stop()
		for i := range 8 {
			if w := a.get(t); w.Code != 200 {
				t.Errorf("away, request %d: %d", i, w.Code)
			}
		}
		if err := node.Restart(); err != nil {
			t.Fatal(err)
		}
		a.wantBack(t)
		a.wantStatuses(t, 200, 200, 200)
		wantCount(t, realStore(t, node), a.policy, 3)
	})
}

// rl05 has a master demoted while connections stay open. The new master does not
// answer, so that the server keeps what it has.
func rl05(t *testing.T) {
	refusesWrites(t, "READONLY ", []any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"})
}

// rl12 has a server that is full, and may not throw keys out.
func rl12(t *testing.T) {
	refusesWrites(t, "OOM ", []any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"})
}

// refusesWrites has a server that says so, with a prefix, from one command to another.
func refusesWrites(t *testing.T, prefix string, begin, end []any) {
	eachPolicyReal(t, policies[:4], []string{"--maxmemory-policy", "noeviction"}, func(t *testing.T, node *redistest.Server, build func(string, int64) *away, policy string) {
		a := build(policy, 3)
		a.wantStatuses(t, 200)
		node.Do(t, begin...)
		wantAway(t, policy, a.get(t))
		if told := a.told(); len(told) != 1 || !redis.HasErrorPrefix(told[0], prefix) {
			t.Errorf("one request, told of %v, want one %s", told, prefix)
		}
		a.wantAway(t, policy, 9)
		node.Do(t, end...)
		a.wantBack(t)
		a.wantStatuses(t, 200, 200, 429) // one was used before
	})
}
