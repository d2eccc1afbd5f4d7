package redistest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/store/storetest"
)

// A server's TIME and the life of its keys follow the clock, back too.
func TestStartAt(t *testing.T) {
	clock := storetest.NewClock()
	s := StartAt(t, clock)
	c, ctx := s.Client(t), context.Background()
	start := clock.Now()
	at := func(d time.Duration) {
		t.Helper()
		clock.Set(start.Add(d))
		got, err := c.Eval(ctx, "local t = redis.call('TIME') return {t[1], t[2], redis.call('EXISTS', 'none')}", nil).Slice()
		if err != nil {
			t.Fatal(err)
		}
		now := clock.Now()
		direct, err := c.Time(ctx).Result()
		if err != nil || !direct.Equal(now) || got[0] != itoa(now.Unix()) || got[1] != itoa(int64(now.Nanosecond()/1000)) {
			t.Errorf("at %v: TIME is %v, %v in a script, %v", now, direct, got, err)
		}
	}
	left := func(want time.Duration) {
		t.Helper()
		got, err := c.Eval(ctx, "return redis.call('PTTL', 'k')", []string{"k"}).Int64()
		if err != nil || got != want.Milliseconds() {
			t.Errorf("%d ms left of the key, %v; want %v", got, err, want)
		}
	}
	const gone = -2 * time.Millisecond
	for _, d := range []time.Duration{0, time.Microsecond, -time.Hour, 100 * 365 * 24 * time.Hour, 0} {
		at(d)
	}
	c.Set(ctx, "k", "v", time.Minute)
	left(time.Minute)
	at(-time.Second)
	left(61 * time.Second)
	at(59_999 * time.Millisecond)
	left(time.Millisecond)
	at(time.Minute + time.Millisecond)
	left(gone)
	// No key comes back to life.
	at(0)
	left(gone)

	other := storetest.NewClock()
	other.Set(start.Add(time.Hour))
	s.Follow(t, other)
	if now, err := c.Time(ctx).Result(); err != nil || !now.Equal(other.Now()) {
		t.Errorf("TIME is %v, %v, by another clock %v", now, err, other.Now())
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// A cluster is well at once, and stays so when its clock jumps.
func TestCluster(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	for name, nodes := range map[string]Nodes{"real time": Cluster(t), "test clock": ClusterAt(t, clock)} {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes.Addrs()})
		defer c.Close()
		for _, move := range []time.Duration{0, time.Second, 100 * 365 * 24 * time.Hour, -100 * 365 * 24 * time.Hour} {
			clock.Advance(move)
			for i := range 100 {
				if err := c.Set(t.Context(), itoa(int64(i)), "v", 0).Err(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		for _, s := range nodes {
			if n := s.Do(t, "DBSIZE"); n.(int64) < 10 {
				t.Errorf("%s: %s has %d of 100 keys", name, s.Addr, n)
			}
		}
	}
}

// A replica takes over from a master that is killed.
func TestSentinel(t *testing.T) {
	t.Parallel()
	w := Sentinel(t)
	first := w.Master(t)
	w.KillMaster(t)
	if w.Master(t) == first {
		t.Error("the master is the same")
	}
}
