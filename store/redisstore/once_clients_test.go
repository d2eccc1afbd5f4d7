package redisstore_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// kind is a kind of client that a decision is sent with.
type kind struct {
	name     string
	open     func(t testing.TB, r *rig, timeout time.Duration) redisstore.Client
	readOnly int  // commands to a server that says READONLY, which has run none of them
	batches  bool // heeds no caller's deadline: commands of many callers are sent as one
}

var kinds = []kind{
	{"client", oneClient, 1, false},
	{"caching client", cachingClient, 1, false},
	{"failover client", failoverClient, 1, false},
	{"ring", ringOfWires, 1, false},
	{"cluster", clusterOfWires, 4, false}, // MaxRedirects and one
	{"cluster without policies", plainCluster, 4, false},
	{"cluster with the server's policies", clusterByServer, 4, false},
	{"auto-pipeliner", autoPipeliner, 1, true},
	{"async auto-pipeliner", asyncAutoPipeliner, 1, true},
	{"cluster's auto-pipeliner", clusterAutoPipeliner, 4, true},
}

// rig is a server with two wires before it.
type rig struct {
	wires  [2]*wire
	master atomic.Int32  // the wire that is a failover client's master
	client *redis.Client // past the wires
	direct *redisstore.Store
}

func newRig(t testing.TB) *rig {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	addr := redistest.Start(t).Addr
	r := &rig{wires: [2]*wire{newWire(t, addr), newWire(t, addr)}}
	r.client = closing(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
	s, err := redisstore.New(r.client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r.direct = s
	return r
}

// open is a store of this kind of client, which has decided before.
func (r *rig) open(t testing.TB, k kind, timeout time.Duration) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(k.open(t, r, timeout), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if _, err := ask(t.Context(), s, "warm", some(t, n+1)...); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// meet sets the fate of decisions on both wires, and begins to count anew.
func (r *rig) meet(t testing.TB, f fate) {
	t.Helper()
	for _, w := range r.wires {
		w.meet(f)
	}
	if err := r.client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) release() {
	for _, w := range r.wires {
		w.release()
	}
}

// count is how many commands of these names have arrived at the wires.
func (r *rig) count(names ...string) (n int) {
	for _, w := range r.wires {
		n += w.count(names...)
	}
	return n
}

func (r *rig) decisions() int { return r.count("evalsha", "eval") }

var callsOfScripts = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// run is how many scripts the server says it was sent.
func (r *rig) run(t testing.TB) (n int) {
	t.Helper()
	info, err := r.client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range callsOfScripts.FindAllStringSubmatch(info, -1) {
		calls, _ := strconv.Atoi(m[1])
		n += calls
	}
	return n
}

// charged is how much of a policy's limit is charged to a key.
func (r *rig) charged(t testing.TB, p *algorithms.Policy, key string) int64 {
	t.Helper()
	look, err := store.Take(t.Context(), r.direct, p, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p.Limit().Count - look.Remaining
}

// once wants that one decision was sent, and so many were made: none or one.
func (r *rig) once(t testing.TB, key string, made int, ps ...*algorithms.Policy) {
	t.Helper()
	if n := r.decisions(); n != 1 {
		t.Errorf("%d decisions were sent; want 1", n)
	}
	if n := r.run(t); n != made {
		t.Errorf("the server was sent %d; want %d", n, made)
	}
	for _, p := range ps {
		if n := r.charged(t, p, key); n != int64(made) {
			t.Errorf("%d units of %s are charged; want %d", n, p.Name(), made)
		}
	}
}

func closing[C interface{ Close() error }](t testing.TB, c C) C {
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wireOptions(r *rig, timeout time.Duration) *redis.Options {
	return &redis.Options{Addr: r.wires[0].Addr, ReadTimeout: timeout, ContextTimeoutEnabled: true}
}

func oneClient(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	return closing(t, redis.NewClient(wireOptions(r, timeout)))
}

func cachingClient(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	o := wireOptions(r, timeout)
	o.ClientSideCacheConfig = &redis.ClientSideCacheConfig{}
	return closing(t, redis.NewClient(o))
}

func failoverClient(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	s := sentinelWire(t, func() string { return r.wires[r.master.Load()].Addr })
	return closing(t, redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "master", SentinelAddrs: []string{s.Addr}, ReadTimeout: timeout, ContextTimeoutEnabled: true,
	}))
}

func ringOfWires(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	return closing(t, redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": r.wires[0].Addr, "b": r.wires[1].Addr}, ReadTimeout: timeout, ContextTimeoutEnabled: true,
	}))
}

// clusterOptions are those of a cluster in which wire 0 has all slots, and wire
// 1 is its replica.
func clusterOptions(r *rig, timeout time.Duration) *redis.ClusterOptions {
	nodes := []redis.ClusterNode{{Addr: r.wires[0].Addr}, {Addr: r.wires[1].Addr}}
	return &redis.ClusterOptions{
		ReadTimeout: timeout, ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: nodes}}, nil
		},
	}
}

func clusterOfWires(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	return closing(t, redis.NewClusterClient(clusterOptions(r, timeout)))
}

func plainCluster(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	o := clusterOptions(r, timeout)
	o.DisableRoutingPolicies = true
	return closing(t, redis.NewClusterClient(o))
}

// clusterByServer routes commands as the server says that they should be.
func clusterByServer(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	c := closing(t, redis.NewClusterClient(clusterOptions(r, timeout)))
	c.SetCommandInfoResolver(c.NewDynamicResolver())
	return c
}

func autoPipeliner(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	return piped(t)(closing(t, redis.NewClient(wireOptions(r, timeout))).AutoPipeline())
}

func asyncAutoPipeliner(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	return piped(t)(closing(t, redis.NewClient(wireOptions(r, timeout))).AsyncAutoPipeline())
}

func clusterAutoPipeliner(t testing.TB, r *rig, timeout time.Duration) redisstore.Client {
	return piped(t)(closing(t, redis.NewClusterClient(clusterOptions(r, timeout))).AutoPipeline())
}

func piped(t testing.TB) func(*redis.AutoPipeliner, error) redisstore.Client {
	return func(p *redis.AutoPipeliner, err error) redisstore.Client {
		if err != nil {
			t.Fatal(err)
		}
		return closing(t, p)
	}
}

// lasting is a policy of n units, of which one comes back each hour: none does
// in a test.
func lasting(t testing.TB, name string, n int64) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, algorithms.Limit{Count: n, Period: time.Duration(n) * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// some are so many policies of 10 units.
func some(t testing.TB, n int) (ps []*algorithms.Policy) {
	t.Helper()
	for i := range n {
		ps = append(ps, lasting(t, fmt.Sprintf("%dof%d", i+1, n), 10))
	}
	return ps
}

// ask takes a unit of each policy for a key, as one decision, and answers for
// the first.
func ask(ctx context.Context, s *redisstore.Store, key string, ps ...*algorithms.Policy) (algorithms.Result, error) {
	charges, results := make([]store.Charge, len(ps)), make([]algorithms.Result, len(ps))
	for i, p := range ps {
		charges[i] = store.Charge{Policy: p, Key: key, Cost: 1}
	}
	err := s.Take(ctx, charges, results)
	return results[0], err
}
