package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// newStore is a Store of its own client.
func newStore(t testing.TB, addr string, c redisstore.Config) *redisstore.Store {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openMini(t *testing.T, clock *storetest.Clock) store.Store {
	return newStore(t, redistest.Mini(t, clock).Addr(), redisstore.Config{})
}

func TestMiniRun(t *testing.T) {
	t.Parallel()
	storetest.Run(t, openMini, runOptions(400))
}

// runOptions are for all algorithms: so many random groups, or a fifth in short
// mode.
func runOptions(steps int) storetest.Options {
	if testing.Short() {
		steps /= 5
	}
	return storetest.Options{Algorithms: casetest.Algorithms(), Steps: steps}
}

func TestMiniVectors(t *testing.T) { casetest.Vectors(t, openMini) }

func TestMiniCases(t *testing.T) {
	t.Parallel()
	casetest.Cases(t, openMini)
}
