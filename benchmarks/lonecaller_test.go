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

// BenchmarkLoneCaller prints the median time of one call after the other: of a
// bare EVALSHA with weir's own script, of one with the barest, and of a decision.
// They take turns, call by call, and take turns in who is first.
func BenchmarkLoneCaller(b *testing.B) {
	const calls = 40_000
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr, ContextTimeoutEnabled: true})
	defer client.Close()
	limit := algorithms.PerMinute(600).WithBurst(100)
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	p := policy(b, "p", limit)
	own, least := weirCharge(b, client, "own", limit, 1, store.Enforce), scripted(b, client, barest, 100_000, 10_000_000)
	callers := []func(key string) error{
		func(key string) error { return client.Do(ctx, own.args(key)...).Err() },
		func(key string) error { return client.Do(ctx, least(key)...).Err() },
		func(key string) error { _, err := store.Take(ctx, s, p, key, 1); return err },
	}
	times := make([][]time.Duration, len(callers))
	for i := range calls {
		key := strconv.Itoa(i % serverKeys)
		for n := range callers {
			n = (n + i) % len(callers)
			start := time.Now()
			if err := callers[n](key); err != nil {
				b.Fatal(err)
			}
			times[n] = append(times[n], time.Since(start))
		}
	}
	var p50 [3]float64
	for i, ts := range times {
		p50[i] = float64(slices.Sorted(slices.Values(ts))[len(ts)/2]) / 1000
	}
	b.Log(fmt.Sprintf("p50 of %d calls: weir %.1f µs; bare EVALSHA of its script %.1f µs, ×%.3f; of the barest %.1f µs, ×%.3f",
		calls, p50[2], p50[0], p50[2]/p50[0], p50[1], p50[2]/p50[1]))
	if _, err := store.Take(ctx, s, p, "1", 5); err != nil { // so that it is there
		b.Fatal(err)
	}
	b.Log(fmt.Sprintf("a key takes %d bytes (MEMORY USAGE), of them the name %d",
		client.MemoryUsage(ctx, "weir:{1}:p:gcra").Val(), len("weir:{1}:p:gcra")))
}
