package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store/storetest"
)

func eval(t *testing.T, addr string) storetest.Eval {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return func(script string, args []string) (string, error) {
		values := make([]any, len(args))
		for i, a := range args {
			values[i] = a
		}
		return client.Eval(t.Context(), script, nil, values...).Text()
	}
}

func TestTwin(t *testing.T) {
	t.Run("miniredis", func(t *testing.T) {
		storetest.Twin(t, algorithms.GCRA{}, eval(t, redistest.Mini(t, storetest.NewClock()).Addr()), storetest.TwinOptions{})
	})
	t.Run("redis", func(t *testing.T) {
		storetest.Twin(t, algorithms.GCRA{}, eval(t, redistest.Start(t).Addr), storetest.TwinOptions{})
	})
}
