package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
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

// Every algorithm that has a twin of its own; the meter's under each of its names
// is one.
func TestTwin(t *testing.T) {
	for _, a := range []algorithms.Scripted{
		algorithms.GCRA{},
		algorithms.TokenBucket{Stepped: true},
		algorithms.FixedWindow{},
		algorithms.FixedWindow{Aligned: true, Offset: 8 * time.Hour},
		algorithms.SlidingCounter{},
		casetest.AnyBan{},
	} {
		t.Run(fmt.Sprintf("%T%+v", a, a), func(t *testing.T) {
			t.Run("miniredis", func(t *testing.T) {
				storetest.Twin(t, a, eval(t, redistest.Mini(t, storetest.NewClock()).Addr()), storetest.TwinOptions{})
			})
			t.Run("redis", func(t *testing.T) {
				t.Parallel()
				storetest.Twin(t, a, eval(t, redistest.Start(t).Addr), storetest.TwinOptions{})
			})
		})
	}
}
