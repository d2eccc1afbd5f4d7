package cellstore_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/cellstore"
	"github.com/weirgo/weir/store/storetest"
)

// The script that gives back, on a real Redis: it needs no module, which this one
// lacks. The time of the key moves back to the nanosecond, and never beyond now; a
// user with the rights that docs/redis-cell.md names may run it.
func TestGiveBackInRedis(t *testing.T) {
	clock := storetest.NewClock()
	node := redistest.StartAt(t, clock)
	node.Do(t, "ACL", "SETUSER", "limiter", "on", ">secret", "resetchannels", "~weir-cell:*", "+evalsha", "+eval", "+get", "+set", "+del", "+time")
	client := redis.NewClient(&redis.Options{Addr: node.Addr, Username: "limiter", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client)
	p := gcra(t, "p", algorithms.PerMinute(30).WithBurst(16)) // 2 s a unit
	const key = "weir-cell:{k}:p:gcra:cell"
	now := clock.Now().UnixNano()
	for _, c := range []struct {
		kept, cost int64
		age        time.Duration
		want       int64 // 0: the key is gone
		life       time.Duration
	}{
		{30_000_000_001, 1, 0, 28_000_000_001, 28_001 * time.Millisecond},
		{30_000_000_001, 3, time.Second, 25_000_000_001, 25_001 * time.Millisecond},
		{30_123_456_789, 1, 987_654 * time.Microsecond, 29_111_110_789, 29_112 * time.Millisecond},
		{30_000_000_000, 1, 2 * time.Second, 30_000_000_000, 0},
		{2_000_000_001, 1, 0, 1, time.Millisecond},
		{2_000_000_000, 1, 0, 0, 0},
		{1_000_000_000, 1, 0, 0, 0},
		{32_000_000_000, 1 << 62, 0, 0, 0},
	} {
		node.Do(t, "SET", key, strconv.FormatInt(now+c.kept, 10))
		err := s.Take(t.Context(), []store.Charge{{Policy: p, Key: "k", Cost: -c.cost, Age: c.age}}, make([]algorithms.Result, 1))
		if !errors.Is(err, cellstore.ErrNoModule) && !redis.HasErrorPrefix(err, "NOPERM") {
			t.Fatal(err)
		}
		got, _ := node.Do(t, "GET", key).(string)
		want := ""
		if c.want > 0 {
			want = strconv.FormatInt(now+c.want, 10)
		}
		if got != want {
			t.Errorf("%+v: the key holds %q, want %q", c, got, want)
		}
		if life := time.Duration(node.Do(t, "PTTL", key).(int64)) * time.Millisecond; c.life > 0 && life != c.life {
			t.Errorf("%+v: the key lives for %v", c, life)
		}
	}
}
