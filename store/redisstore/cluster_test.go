package redisstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// With a tag every group is one decision on a cluster too: the whole contract.
func TestClusterRun(t *testing.T) {
	t.Parallel()
	nodes := redistest.ClusterAt(t, storetest.NewClock())
	storetest.Run(t, func(t *testing.T, clock *storetest.Clock) store.Store {
		for _, s := range nodes {
			s.Do(t, "FLUSHALL")
		}
		nodes.Follow(t, clock)
		return spread(t, clusterClient(t, nodes), nodes, redisstore.Config{Tag: "weir"}).Store
	}, storetest.Options{})
}

func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.ClusterAt(t, storetest.NewClock())
	client := clusterClient(t, nodes)
	s := spread(t, client, nodes, redisstore.Config{})
	t.Run("RL-03", s.everyKeyHasItsLimit)
	t.Run("groups", s.groupsOfOneKey)
	t.Run("mistakes", s.manyKeysAreRefused)
	t.Run("tag", func(t *testing.T) {
		spread(t, client, nodes, redisstore.Config{Tag: "t"}).anyGroup(t)
	})
	t.Run("KEY-11", func(t *testing.T) { identities(t, s, client) })
	t.Run("RL-04", func(t *testing.T) { oneSlot(t, s, client, nodes) })
}

// A Ring is two servers that know nothing of each other.
func TestClusterOfRing(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	servers := []*redistest.Server{redistest.StartAt(t, clock), redistest.StartAt(t, clock)}
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": servers[0].Addr, "b": servers[1].Addr}, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = ring.Close() })
	s := spread(t, ring, servers, redisstore.Config{})
	t.Run("RL-03", s.everyKeyHasItsLimit)
	t.Run("groups", s.groupsOfOneKey)
	t.Run("mistakes", s.manyKeysAreRefused)
	t.Run("tag", func(t *testing.T) {
		spread(t, ring, servers, redisstore.Config{Tag: "t"}).anyGroup(t)
	})
}

func clusterClient(t *testing.T, nodes redistest.Nodes) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes.Addrs(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// spreadStore is a store whose keys several servers hold.
type spreadStore struct {
	*redisstore.Store
	servers []*redistest.Server
}

func spread(t *testing.T, client redisstore.Client, servers []*redistest.Server, c redisstore.Config) spreadStore {
	t.Helper()
	s, err := redisstore.New(client, c)
	if err != nil {
		t.Fatal(err)
	}
	return spreadStore{s, servers}
}

// calls is how many of these commands the servers were sent.
func (s spreadStore) calls(t *testing.T, commands ...string) (n int) {
	t.Helper()
	for _, server := range s.servers {
		for line := range strings.Lines(server.Do(t, "INFO", "commandstats").(string)) {
			name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
			if !slices.Contains(commands, name) {
				continue
			}
			// One that the user may not send is no call, but it was sent.
			calls, rest, _ := strings.Cut(rest, ",")
			_, rest, _ = strings.Cut(rest, "rejected_calls=")
			rejected, _, _ := strings.Cut(rest, ",")
			for _, digits := range []string{calls, rejected} {
				count, err := strconv.Atoi(digits)
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				n += count
			}
		}
	}
	return n
}

func (s spreadStore) everyKeyHasItsLimit(t *testing.T) {
	var policies []*algorithms.Policy
	for i, a := range casetest.Algorithms() {
		p, err := algorithms.NewPolicy("p"+strconv.Itoa(i), a, algorithms.PerMinute(3))
		if err == nil {
			err = s.Validate(p)
		}
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	var wg sync.WaitGroup
	seed := strconv.Itoa(rand.Int())
	for i := range 200 {
		wg.Go(func() {
			key, p := seed+"-"+strconv.Itoa(i), policies[i%len(policies)]
			for call := range 4 {
				r, err := store.Take(t.Context(), s, p, key, 1)
				if err != nil || r.Limited != (call == 3) || r.Remaining != max(0, 2-int64(call)) {
					t.Errorf("key %s, call %d: %+v, %v", key, call+1, r, err)
				}
			}
		})
	}
	wg.Wait()
	for _, server := range s.servers {
		if n := server.Do(t, "DBSIZE").(int64); n < 20 {
			t.Errorf("a server has %d of 200 keys", n)
		}
	}
}

// Policies of one key are one decision, without a tag.
func (s spreadStore) groupsOfOneKey(t *testing.T) {
	a, b := gcra(t, "a", algorithms.PerMinute(3)), gcra(t, "b", algorithms.PerMinute(2))
	for i := range 50 {
		for call := range 3 {
			rs, err := takeGroup(s, "group"+strconv.Itoa(i), a, b)
			if err != nil || rs[0].Limited || rs[1].Limited != (call == 2) || rs[0].Remaining != max(1, 2-int64(call)) {
				t.Errorf("key %d, call %d: %+v, %v", i, call+1, rs, err)
			}
		}
	}
}

// Other groups fail before anything is sent, and Validate tells so at start.
func (s spreadStore) manyKeysAreRefused(t *testing.T) {
	a, b := gcra(t, "a", algorithms.PerMinute(3)), gcra(t, "b", algorithms.PerMinute(2))
	scripts := func() int { return s.calls(t, "eval", "evalsha") }
	before := scripts()
	for i := range 20 {
		charges := []store.Charge{{Policy: a, Key: "x", Cost: 1}, {Policy: b, Key: strconv.Itoa(i), Cost: 1}}
		if i%2 == 1 {
			charges[1].Policy = a
		}
		err := s.Take(context.Background(), charges, make([]algorithms.Result, 2))
		if !errors.Is(err, redisstore.ErrCrossSlot) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("two keys: %v", err)
		}
	}
	if after := scripts(); after != before {
		t.Errorf("%d scripts were sent", after-before)
	}
	if mustTake(t, s, a, "x", 0); scripts() == before {
		t.Error("a charge sends no script: this test sees nothing")
	}
	err := s.Validate(a, b)
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "Config.Tag") || !strings.Contains(err.Error(), "store.Sequential") {
		t.Errorf("Validate: %v", err)
	}
}

// With a tag any group will do.
func (s spreadStore) anyGroup(t *testing.T) {
	a, b := gcra(t, "a", algorithms.PerMinute(30)), gcra(t, "b", algorithms.PerMinute(20))
	if err := s.Validate(a, b); err != nil {
		t.Errorf("Validate: %v", err)
	}
	for i := range 30 {
		charges, results := []store.Charge{{Policy: a, Key: "x", Cost: 1}, {Policy: a, Key: strconv.Itoa(i), Cost: 1}, {Policy: b, Key: "y", Cost: 1}}, make([]algorithms.Result, 3)
		err := s.Take(t.Context(), charges, results)
		if err != nil || results[2].Limited != (i >= 20) || results[0].Remaining != max(10, 29-int64(i)) {
			t.Errorf("group %d: %+v, %v", i, results, err)
		}
	}
}

// identities are keys with braces, which a cluster reads its own way: KEY-11.
func identities(t *testing.T, s spreadStore, client *redis.ClusterClient) {
	a, b := gcra(t, "a", algorithms.PerMinute(3)), gcra(t, "b", algorithms.PerMinute(5))
	names := &sent{}
	client.AddHook(names)
	for _, key := range []string{"user1", "{user1}", "a}b{c", "{}x", "}", "{", "{a}1", "{a}2"} {
		for call := range 4 {
			rs, err := takeGroup(s, key, a, b)
			if err != nil || rs[0].Limited != (call == 3) || rs[1].Remaining != max(2, 4-int64(call)) {
				t.Errorf("key %q, call %d: %+v, %v", key, call+1, rs, err)
			}
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(slices.Concat(names.keys()...))))); n != 16 {
		t.Errorf("%d names for eight keys of two policies", n)
	}
}
