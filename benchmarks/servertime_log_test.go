package benchmarks

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// unitTime is how far apart the units of a log are.
const unitTime = 100 * time.Second

// fillLog makes a full log: units 0 to n - 1, the last at the time of ARGV[2].
const fillLog = `for i = 1, tonumber(ARGV[1]) do
  local at = string.format('%.0f', ARGV[2] - (ARGV[1] - i) * ARGV[3])
  redis.call('ZADD', KEYS[1], at, at .. '-00000000')
end`

// BenchmarkLogServerTime prints what a decision on a sliding log costs the
// server, by how many units it holds. Where it is allowed the log is full and
// stays so: each time one unit leaves and one comes.
func BenchmarkLogServerTime(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	defer client.Close()
	contenders := []contender{logCharge(b, client, 10, true)}
	for _, n := range []int64{100, 1000, algorithms.MaxLog} {
		contenders = append(contenders, logCharge(b, client, n, true))
	}
	for _, n := range []int64{10, 100, 1000, algorithms.MaxLog} {
		contenders = append(contenders, logCharge(b, client, n, false))
	}
	for i, line := range medians(b, client, contenders) {
		if i == 0 {
			b.Log("server µs a call: median, ratio to an allowed one at 10 (least … most)")
		}
		b.Log(line)
	}
}

func logCharge(b *testing.B, client *redis.Client, n int64, allowed bool) contender {
	ctx := context.Background()
	start := time.UnixMicro(1_700_000_000_000_000)
	p, err := algorithms.NewPolicy("p", algorithms.SlidingLog{}, algorithms.Limit{Count: n, Period: time.Duration(n) * unitTime})
	if err != nil {
		b.Fatal(err)
	}
	t := &tap{Client: client}
	s, err := redisstore.New(t, redisstore.Config{Clock: func() time.Time { return start }})
	if err != nil {
		b.Fatal(err)
	}
	name := fmt.Sprintf("log of %d, refused", n)
	if allowed {
		name = fmt.Sprintf("log of %d, allowed", n)
	}
	calls := map[string]int64{}
	fill := redis.NewScript(fillLog)
	key := func(i int) string { return "weir:{" + name + strconv.Itoa(i) + "}:p:sliding-log" }
	for i := range logKeys {
		if err := fill.Run(ctx, client, []string{key(i)}, n, start.UnixMicro(), unitTime.Microseconds()).Err(); err != nil && err != redis.Nil {
			b.Fatal(err)
		}
	}
	// What the store sends is sent again, at later times.
	r, err := store.Take(ctx, s, p, name+"0", 1)
	if err != nil || !r.Limited {
		b.Fatalf("the log is not full: %+v, %v", r, err)
	}
	args := t.last
	i := 0
	return contender{name, func(string) []any {
		own := slices.Clone(args)
		k := key(i % logKeys)
		i++
		own[3] = k
		if allowed {
			calls[k]++
			own[4] = start.Add(time.Duration(calls[k]) * unitTime).UnixMicro()
		}
		return own
	}}
}
