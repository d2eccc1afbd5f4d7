package cellstore_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/cellstore"
	"github.com/weirgo/weir/store/cellstore/celltest"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/redisstore"
)

// The same program on three stores gets the same answers at whole seconds: in
// memory, by a script in Redis, and by redis-cell, here in a test's server.
func Example() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	module, err := celltest.Register(server)
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()

	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	module.SetTime(now)
	cell, err := cellstore.New(client, cellstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	script, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	memory := memstore.New(memstore.Config{Clock: func() time.Time { return now }})

	codes, err := algorithms.NewPolicy("verifycodesend", algorithms.GCRA{}, algorithms.PerMinute(30).WithBurst(16))
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range []struct {
		seconds time.Duration
		cost    int64
	}{{0, 1}, {0, 1}, {1, 14}, {0, 1}, {0, 0}, {5, 2}, {0, -3}, {0, 17}, {3600, 1}} {
		now = now.Add(step.seconds * time.Second)
		module.SetTime(now)
		var answers [3][5]int64
		for i, s := range []store.Store{memory, script, cell} {
			r, err := store.Take(context.Background(), s, codes, "user:7", step.cost)
			if err != nil {
				log.Fatal(err)
			}
			answers[i] = r.Cell()
		}
		fmt.Println(answers)
	}
	// Output:
	// [[0 16 15 -1 2] [0 16 15 -1 2] [0 16 15 -1 2]]
	// [[0 16 14 -1 4] [0 16 14 -1 4] [0 16 14 -1 4]]
	// [[0 16 0 -1 31] [0 16 0 -1 31] [0 16 0 -1 31]]
	// [[1 16 0 1 31] [1 16 0 1 31] [1 16 0 1 31]]
	// [[1 16 0 1 31] [1 16 0 1 31] [1 16 0 1 31]]
	// [[0 16 1 -1 30] [0 16 1 -1 30] [0 16 1 -1 30]]
	// [[0 16 4 -1 24] [0 16 4 -1 24] [0 16 4 -1 24]]
	// [[1 16 4 -1 24] [1 16 4 -1 24] [1 16 4 -1 24]]
	// [[0 16 15 -1 2] [0 16 15 -1 2] [0 16 15 -1 2]]
}
