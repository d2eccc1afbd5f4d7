package histories

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// server gives benches of stores on one redis-server, which each finds empty and by
// its own clock.
func server(t *testing.T) func(*testing.T, subject, bool, *redis.Options) *bench {
	server := redistest.StartAt(t, storetest.NewClock())
	control := server.Client(t)
	do := func(t *testing.T, args ...any) {
		t.Helper()
		if err := control.Do(context.Background(), args...).Err(); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	return func(t *testing.T, s subject, groups bool, o *redis.Options) *bench {
		do(t, "FLUSHALL")
		clock := storetest.NewClock()
		server.Follow(t, clock)
		o.Addr, o.ContextTimeoutEnabled = server.Addr, true
		client := redis.NewClient(o)
		t.Cleanup(func() { _ = client.Close() })
		store, err := redisstore.New(client, redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return &bench{
			subject: s,
			store:   store,
			clock:   clock,
			// A server counts life times from when a script began, and the script asks for
			// the time a little later. No real clock jumps by a second in between, so
			// neither does this one: scripts that have come wait until it is set. Now and
			// then they are lost, too, and have to be sent again.
			jump: func(set func()) {
				do(t, "CLIENT", "PAUSE", 60_000, "WRITE")
				set()
				do(t, "CLIENT", "UNPAUSE")
				if clock.Now().UnixMicro()%8 == 0 {
					do(t, "SCRIPT", "FLUSH")
				}
			},
			groups: groups,
			seed:   seed(t),
		}
	}
}

func TestRedis(t *testing.T) {
	t.Parallel()
	open := server(t)
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			forms(t, func(t *testing.T, groups bool) { open(t, s, groups, &redis.Options{}).all(t, count(20, 4)) })
		})
	}
}
