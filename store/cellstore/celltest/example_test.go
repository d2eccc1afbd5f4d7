package celltest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/store/cellstore/celltest"
)

func ExampleRegister() {
	m := miniredis.NewMiniRedis() // in a test: miniredis.RunT(t)
	if err := m.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	cell, err := celltest.Register(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	cell.SetTime(now)

	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer func() { _ = client.Close() }()
	take := func() {
		// Two at once, and then one in ten seconds.
		fmt.Println(client.Do(context.Background(), "CL.THROTTLE", "user:7", 1, 6, 60).Int64Slice())
	}
	take()
	take()
	take()
	cell.SetTime(now.Add(10 * time.Second))
	take()
	// Output:
	// [0 2 1 -1 10] <nil>
	// [0 2 0 -1 20] <nil>
	// [1 2 0 10 20] <nil>
	// [0 2 0 -1 20] <nil>
}
