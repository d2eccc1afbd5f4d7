package benchmarks

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/redisstore"
)

// BenchmarkMemory prints what a key takes under each algorithm: in Redis as
// MEMORY USAGE has it, in memory as the heap grows. The log keeps as many numbers
// as are in use, the others always the same.
func BenchmarkMemory(b *testing.B) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr, ContextTimeoutEnabled: true})
	defer client.Close()
	inRedis, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Log("bytes a key: in Redis, in memory")
	for _, c := range []struct {
		a    algorithms.Algorithm
		used int
		keys int
	}{
		{algorithms.GCRA{}, 5, 100_000},
		{algorithms.FixedWindow{}, 5, 100_000},
		{algorithms.SlidingCounter{}, 5, 100_000},
		{algorithms.SlidingLog{}, 5, 100_000},
		{algorithms.SlidingLog{}, 100, 10_000},
		{algorithms.SlidingLog{}, 1000, 1000},
		{algorithms.SlidingLog{}, 10_000, 10},
	} {
		p, err := algorithms.NewPolicy("p", c.a, algorithms.PerDay(10_000))
		if err != nil {
			b.Fatal(err)
		}
		charge := func(s store.Store, key string) {
			for range c.used {
				if _, err := store.Take(ctx, s, p, key, 1); err != nil {
					b.Fatal(err)
				}
			}
		}
		key := fmt.Sprint("+1202555", c.used)
		charge(inRedis, key)
		bytes := client.MemoryUsage(ctx, "weir:{"+key+"}:p:"+c.a.Name(), 0).Val()

		before := heap()
		memory := memstore.New(memstore.Config{})
		for i := range c.keys {
			charge(memory, strconv.Itoa(i))
		}
		grown := heap() - before
		runtime.KeepAlive(memory)
		b.Logf("%-16s %6d units used  %9d  %9d", c.a.Name(), c.used, bytes, grown/uint64(c.keys))
	}
}

// heap is the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
