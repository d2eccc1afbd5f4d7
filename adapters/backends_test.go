package adapters_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/redisstore"
)

// backend opens a store for a test, by a clock or, where that is nil, by the time
// of the bubble that the test runs in. It is in memory unless TestCasesInRedis
// says otherwise.
var backend = inMemory

func inMemory(_ *testing.T, now func() time.Time) store.Store {
	return memstore.New(memstore.Config{Clock: now})
}

// inMini is a miniredis, without a network that a bubble could not see.
func inMini(t *testing.T, now func() time.Time) store.Store {
	t.Helper()
	m := miniredis.NewMiniRedis()
	client := redis.NewClient(&redis.Options{
		// An address, as go-redis looks up the address of a name, whatever dials, and
		// what the resolver makes in a bubble can't be used outside of it.
		Addr:                  "127.0.0.1:0",
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
		ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	s, err := redisstore.New(client, redisstore.Config{Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stores counts the stores that share one server, which must not meet.
var stores atomic.Int64

// inRedis is a real Redis. In a bubble, whose time it can't have, it is a miniredis.
func inRedis(s *redistest.Server) func(*testing.T, func() time.Time) store.Store {
	return func(t *testing.T, now func() time.Time) store.Store {
		t.Helper()
		if now == nil {
			return inMini(t, nil)
		}
		client := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		})
		r, err := redisstore.New(client, redisstore.Config{Clock: now})
		if err != nil {
			t.Fatal(err)
		}
		return store.Prefix(r, fmt.Sprint(stores.Add(1)))
	}
}

// TestCasesInRedis holds the cases about answers, whose numbers come from the store,
// to the same with a store in Redis.
func TestCasesInRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("the cases in memory are the short form")
	}
	defer func() { backend = inMemory }()
	for name, open := range map[string]func(*testing.T, func() time.Time) store.Store{
		"mini": inMini,
		"real": inRedis(redistest.Start(t)),
	} {
		t.Run(name, func(t *testing.T) {
			backend = open
			answerCases(t)
		})
	}
}
