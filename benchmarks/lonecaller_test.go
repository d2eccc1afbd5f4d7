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

// BenchmarkLoneCaller prints the median time of one call after the other: of
// EVALSHA with the barest script through the bare client, and of a decision.
// They take turns, call by call.
func BenchmarkLoneCaller(b *testing.B) {
	const calls = 20_000
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr, ContextTimeoutEnabled: true})
	defer client.Close()
	bare := scripted(b, client, barest, 100_000, 10_000_000)
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	p := policy(b, "p", algorithms.PerMinute(600).WithBurst(100))
	var bareTimes, weirTimes []time.Duration
	for i := range calls {
		key := strconv.Itoa(i % serverKeys)
		start := time.Now()
		if err := client.Do(ctx, bare(key)...).Err(); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if _, err := store.Take(ctx, s, p, key, 1); err != nil {
			b.Fatal(err)
		}
		bareTimes, weirTimes = append(bareTimes, middle.Sub(start)), append(weirTimes, time.Since(middle))
	}
	half := func(ts []time.Duration) time.Duration { return slices.Sorted(slices.Values(ts))[len(ts)/2] }
	b.Log(fmt.Sprintf("p50 of %d calls: bare EVALSHA %v, weir %v, ×%.3f", calls, half(bareTimes), half(weirTimes), float64(half(weirTimes))/float64(half(bareTimes))))
	if _, err := store.Take(ctx, s, p, "1", 5); err != nil { // so that it is there
		b.Fatal(err)
	}
	b.Log(fmt.Sprintf("a key takes %d bytes (MEMORY USAGE), of them the name %d",
		client.MemoryUsage(ctx, "weir:{1}:p:gcra").Val(), len("weir:{1}:p:gcra")))
}
