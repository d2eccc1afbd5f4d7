package benchmarks

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// manyKeys is how many keys BenchmarkKeysRunOut makes of each algorithm. A million
// take it ten minutes on a small machine, more than go test waits by itself.
var manyKeys = flag.Int("keys", 50_000, "keys of each algorithm in BenchmarkKeysRunOut")

// unlike is how far from what it was before, in bytes, the memory of a server may
// be when all keys are gone: connections and scripts come and go.
const unlike = 1 << 20

// BenchmarkKeysRunOut prints what many callers cost a server under each algorithm,
// one unit used by each, and what is left of it when their limits have run out,
// which must be nothing. The server's clock is moved on, so that nobody
// waits for that. A key's bytes are all that the server's memory has grown by, its
// own tables included, and so more than MEMORY USAGE of one key.
func BenchmarkKeysRunOut(b *testing.B) {
	clock := storetest.NewClock()
	server := redistest.StartAt(b, clock)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ContextTimeoutEnabled: true, PoolSize: 32, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	defer client.Close()
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	ban, err := algorithms.Ban{Strikes: 5, Within: time.Hour, For: time.Hour}.Policy("p")
	if err != nil {
		b.Fatal(err)
	}
	policies := []*algorithms.Policy{ban}
	for _, a := range []algorithms.Algorithm{
		algorithms.GCRA{}, algorithms.LeakyBucket{}, algorithms.TokenBucket{}, algorithms.FixedWindow{}, algorithms.SlidingCounter{}, algorithms.SlidingLog{},
	} {
		p, err := algorithms.NewPolicy("p", a, algorithms.PerHour(5))
		if err != nil {
			b.Fatal(err)
		}
		policies = append(policies, p)
	}
	for _, p := range policies { // connections and scripts are there from the first
		fill(b, s, p, 10_000)
	}
	settled(b, client, clock, 0)

	b.Logf("%-16s %12s %12s %10s %12s", "used_memory", "before", "at the top", "a key", "run out")
	for _, p := range policies {
		before := used(b, client)
		fill(b, s, p, *manyKeys)
		if n := client.DBSize(context.Background()).Val(); n != int64(*manyKeys) {
			b.Fatalf("%s: %d keys", p.Algorithm().Name(), n)
		}
		top := used(b, client)
		after := settled(b, client, clock, before)
		b.Logf("%-16s %12d %12d %10.0f %12d", p.Algorithm().Name(), before, top, float64(top-before)/float64(*manyKeys), after)
	}
}

// fill charges so many keys one unit each.
func fill(b *testing.B, s store.Store, p *algorithms.Policy, keys int) {
	b.Helper()
	const callers = 32
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for i := n; i < keys; i += callers {
				// As long as a phone number with its plus.
				if r, err := store.Take(context.Background(), s, p, fmt.Sprintf("+1%010d", i), 1); err != nil || r.Limited {
					b.Errorf("key %d: %+v, %v", i, r, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// settled moves the clock to where every limit has run out, waits until the server
// has found that out by itself, and gives its memory. Nobody asks for a key
// meanwhile. Beside 0 the memory must be what it was before. It polls: another
// process can't be waited for otherwise.
func settled(b *testing.B, client *redis.Client, clock *storetest.Clock, before int64) (after int64) {
	b.Helper()
	clock.Advance(3 * time.Hour) // a sliding counter's keys live for up to two periods
	keys := int64(0)
	for range 1200 { // two minutes
		keys, after = client.DBSize(context.Background()).Val(), used(b, client)
		if keys == 0 && (before == 0 || after <= before+unlike) {
			return after
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Fatalf("%d keys are left, in %d bytes; before there were %d", keys, after, before)
	return 0
}

// used is the server's used_memory in bytes.
func used(b *testing.B, client *redis.Client) int64 {
	b.Helper()
	info, err := client.Info(context.Background(), "memory").Result()
	_, rest, found := strings.Cut(info, "\nused_memory:")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, parseErr := strconv.ParseInt(text, 10, 64)
	if err != nil || !found || parseErr != nil {
		b.Fatalf("INFO memory: %v, %v", err, parseErr)
	}
	return n
}
