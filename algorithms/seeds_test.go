package algorithms_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// TestSeeds takes the texts that everybody learns rate limiting from, and says
// with exact numbers what becomes of each here: in memory, in miniredis and in a
// real server.
func TestSeeds(t *testing.T) {
	t.Run("funnel", seedFunnel)
	t.Run("redis-cell", seedRedisCell)
	t.Run("sorted set", seedSortedSet)
	t.Run("INCR per interface", seedCounter)
	t.Run("interval and step", seedStepped)
	t.Run("clock of the caller", seedCallersClock)
	t.Run("ban", seedBan)
	t.Run("race", seedRace)
}

// place is a store, its clock, and where it is Redis a client of the server.
type place struct {
	store.Store
	*storetest.Clock
	redis *redis.Client
}

// everywhere runs a test in each kind of store. What needs a real server is
// skipped where there is none.
func everywhere(t *testing.T, test func(t *testing.T, p place)) {
	t.Run("memory", func(t *testing.T) {
		clock := storetest.NewClock()
		test(t, place{memstore.New(memstore.Config{Clock: clock.Now}), clock, nil})
	})
	t.Run("miniredis", func(t *testing.T) {
		clock := storetest.NewClock()
		test(t, inRedis(t, redistest.Mini(t, clock).Addr(), clock, redisstore.Config{}))
	})
	t.Run("redis", func(t *testing.T) {
		clock := storetest.NewClock()
		test(t, inRedis(t, redistest.StartAt(t, clock).Addr, clock, redisstore.Config{}))
	})
}

func inRedis(t *testing.T, addr string, clock *storetest.Clock, c redisstore.Config) place {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, c)
	if err != nil {
		t.Fatal(err)
	}
	return place{s, clock, client}
}

// take charges one unit and gives the answer.
func (p place) take(t *testing.T, policy *algorithms.Policy, key string) algorithms.Result {
	t.Helper()
	r, err := store.Take(context.Background(), p, policy, key, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// burst asks n times at once. It wants the first so many to pass, and none of
// the rest.
func (p place) burst(t *testing.T, policy *algorithms.Policy, key string, n, want int) {
	t.Helper()
	for i := range n {
		if r := p.take(t, policy, key); r.Limited != (i >= want) {
			t.Fatalf("call %d of %d is answered %+v, want %d to pass", i+1, n, r, want)
		}
	}
}

// group charges a group and tells whether it passed.
func (p place) group(t *testing.T, charges ...store.Charge) (bool, []algorithms.Result) {
	t.Helper()
	results := make([]algorithms.Result, len(charges))
	if err := p.Take(context.Background(), charges, results); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Limited {
			return false, results
		}
	}
	return true, results
}

func seedPolicy(t *testing.T, name string, a algorithms.Algorithm, l limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The text: a funnel holds 15 and leaks half a unit a second, which is 30 a
// minute. A user replies to 20 posts at once: 15 go in, 5 are refused. It is
// written as an object in memory, with the rest of the room as a float that is
// brought up to date at each call. A second part wants it in Redis, and finds that
// reading a hash, computing and writing it back is no single step.
func seedFunnel(t *testing.T) {
	for name, policy := range map[string]*algorithms.Policy{
		"continuous": seedPolicy(t, "reply", algorithms.LeakyBucket{}, algorithms.PerMinute(30).WithBurst(15)),
		"stepped":    seedPolicy(t, "reply", algorithms.LeakyBucket{Stepped: true}, limit{Count: 1, Period: 2 * time.Second, Burst: 15}),
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, p place) {
				p.burst(t, policy, "u1", 20, 15)
				if r := p.take(t, policy, "u1"); r.RetryAfter != 2*time.Second || r.ResetAfter != 30*time.Second {
					t.Errorf("refused with %+v, want another try in 2 s and an empty funnel in 30 s", r)
				}
				p.Advance(2*time.Second - time.Microsecond)
				p.burst(t, policy, "u1", 1, 0)
				p.Advance(time.Microsecond)
				p.burst(t, policy, "u1", 2, 1)
				p.Advance(30 * time.Second)
				p.burst(t, policy, "u1", 20, 15)
			})
		})
	}
}

// The text: CL.THROTTLE user:verifycodesend 15 30 60 asks redis-cell for one of 30
// a minute. A copy of it that many pages have reads 15 as the capacity, and prints
// 15 and 14 as limit and remaining. redis-cell adds one to max_burst (its own page
// says so, and the module answers so): after a first unit, 15 more are left. So
// max_burst 15 is Burst 16 here.
func seedRedisCell(t *testing.T) {
	policy := seedPolicy(t, "verifycodesend", algorithms.GCRA{}, algorithms.PerMinute(30).WithBurst(15+1))
	everywhere(t, func(t *testing.T, p place) {
		for i := range int64(16) {
			want := [5]int64{0, 16, 15 - i, -1, 2 * (i + 1)}
			if got := p.take(t, policy, "user").Cell(); got != want {
				t.Errorf("call %d: %v, want %v", i+1, got, want)
			}
		}
		for range 2 {
			if got, want := p.take(t, policy, "user").Cell(), [5]int64{1, 16, 0, 2, 32}; got != want {
				t.Errorf("the next: %v, want %v", got, want)
			}
		}
	})
}

// The text: a token bucket gets so many tokens at each interval, up to its
// capacity; a leaky bucket loses so many at each interval. Both keep the time of
// the last step and catch up when they are asked.
func seedStepped(t *testing.T) {
	each := limit{Count: 4, Period: 10 * time.Second, Burst: 10} // step, interval, capacity
	for _, a := range []algorithms.Algorithm{algorithms.TokenBucket{Stepped: true}, algorithms.LeakyBucket{Stepped: true}} {
		policy := seedPolicy(t, "p", a, each)
		t.Run(a.Name(), func(t *testing.T) {
			everywhere(t, func(t *testing.T, p place) {
				p.burst(t, policy, "k", 12, 10)
				p.Advance(10*time.Second - time.Microsecond)
				p.burst(t, policy, "k", 1, 0)
				p.Advance(time.Microsecond)
				p.burst(t, policy, "k", 6, 4)
				p.Advance(15 * time.Second) // one step, and a half that is not lost
				p.burst(t, policy, "k", 6, 4)
				p.Advance(5 * time.Second)
				p.burst(t, policy, "k", 6, 4)
				p.Advance(time.Hour)
				p.burst(t, policy, "k", 12, 10)
			})
		})
	}
}

// The text: a script gets the time from the caller, since it could not write
// after TIME in old versions of Redis. With a Clock of its own a store answers the
// same, whatever the server's clock says: here it is 77 days behind.
func seedCallersClock(t *testing.T) {
	bucket, window := algorithms.PerMinute(30).WithBurst(15), algorithms.PerMinute(15)
	policies := []*algorithms.Policy{
		seedPolicy(t, "a", algorithms.GCRA{}, bucket),
		seedPolicy(t, "b", algorithms.LeakyBucket{}, bucket),
		seedPolicy(t, "c", algorithms.TokenBucket{Stepped: true}, limit{Count: 1, Period: 2 * time.Second, Burst: 15}),
		seedPolicy(t, "d", algorithms.FixedWindow{}, window),
		seedPolicy(t, "e", algorithms.FixedWindow{Aligned: true}, window),
		seedPolicy(t, "f", algorithms.SlidingCounter{}, window),
		seedPolicy(t, "g", algorithms.SlidingLog{}, window),
	}
	// Of a hundred calls, one each 1.5 s, a bucket passes 15 and then one each 2 s,
	// a window 15 in each of three minutes, a sliding counter 15, then 14, then 7 in
	// half a minute.
	want := []int{89, 89, 89, 45, 45, 36, 45}
	test := func(t *testing.T, start func(*testing.T, *storetest.Clock) string) {
		callers, servers := storetest.NewClock(), storetest.NewClock()
		byServer := inRedis(t, start(t, callers), callers, redisstore.Config{})
		servers.Advance(-77 * 24 * time.Hour)
		byCaller := inRedis(t, start(t, servers), servers, redisstore.Config{Clock: callers.Now})
		passed := make([]int, len(policies))
		for step := range 100 {
			for i, policy := range policies {
				a, b := byServer.take(t, policy, "k"), byCaller.take(t, policy, "k")
				if a != b {
					t.Fatalf("%s, step %d: %+v by the server's clock, %+v by the caller's", policy.ID(), step, a, b)
				}
				if !a.Limited {
					passed[i]++
				}
			}
			callers.Advance(1500 * time.Millisecond)
			servers.Advance(1500 * time.Millisecond)
		}
		if !slices.Equal(passed, want) {
			t.Errorf("passed %v, want %v", passed, want)
		}
	}
	t.Run("miniredis", func(t *testing.T) {
		test(t, func(t *testing.T, c *storetest.Clock) string { return redistest.Mini(t, c).Addr() })
	})
	t.Run("redis", func(t *testing.T) {
		test(t, func(t *testing.T, c *storetest.Clock) string { return redistest.StartAt(t, c).Addr })
	})
}
