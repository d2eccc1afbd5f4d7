package redisstore_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/redisstore"
)

// What a client of the middleware sees of a server that refuses writes, under each
// policy for failures, behind a breaker: never a denial. The failures are counted,
// and limits are back without a restart when the server is.
func TestFailuresUnderEachPolicy(t *testing.T) {
	for _, c := range []struct {
		id, prefix string
		begin, end []any
	}{
		{"RL-05", "READONLY ", []any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}},
		{"RL-12", "OOM ", []any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
	} {
		for name, during := range map[string]int{"open": http.StatusOK, "closed": http.StatusServiceUnavailable} {
			t.Run(c.id+"/"+name, func(t *testing.T) {
				t.Parallel()
				node := redistest.Start(t, "--maxmemory-policy", "noeviction")
				first := make(chan error, 1)
				// It opens at the fifth failure; that it is open is a failure too.
				var limits store.Store = breaker.New(newStore(t, node.Addr, redisstore.Config{}), breaker.Config{
					Cooldown: time.Millisecond, Changed: func(opened bool, why error) {
						if opened && len(first) == 0 {
							first <- why
						}
					}})
				var told, failed, limited atomic.Int64
				if name == "open" {
					limits = store.FailOpen(limits, func(ctx context.Context, err error) {
						if told.Add(1); !store.IsFailure(ctx, err) {
							t.Errorf("not a failure: %v", err)
						}
					})
				}
				m, err := middleware.New(middleware.Config{
					Store: limits, Rules: []middleware.Rule{{Policy: lasting(t, "p", 2), Key: keyfunc.Const("k")}},
					Observe: func(_ context.Context, e middleware.Event) {
						switch e.Outcome {
						case middleware.Failed:
							failed.Add(1)
						case middleware.Refused:
							limited.Add(1)
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				serve := func() int {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
					return w.Code
				}
				if code := serve(); code != http.StatusOK {
					t.Fatalf("at first: %d", code)
				}
				node.Do(t, c.begin...)
				for i := range 10 {
					if code := serve(); code != during {
						t.Errorf("call %d: %d; want %d", i+1, code, during)
					}
				}
				if counted := told.Load() + failed.Load(); counted != 10 || limited.Load() != 0 {
					t.Errorf("%d failures of 10 calls, and %d refusals", counted, limited.Load())
				}
				select {
				case why := <-first:
					if !redis.HasErrorPrefix(why, c.prefix) {
						t.Errorf("the breaker opened because of %v", why)
					}
				default:
					t.Error("ten failures, and the breaker did not open")
				}
				node.Do(t, c.end...)
				// The breaker's time is real: it is open until a call after its cooldown.
				codes := map[int]int{}
				for end := time.Now().Add(30 * time.Second); codes[http.StatusTooManyRequests] == 0; time.Sleep(time.Millisecond) {
					codes[serve()]++
					if time.Now().After(end) {
						t.Fatalf("no limits in 30 s: %v", codes)
					}
				}
				unasked := int(told.Load()+failed.Load()) - 10
				if passed := codes[http.StatusOK] + codes[http.StatusServiceUnavailable] - unasked; passed != 1 {
					t.Errorf("%d passed of the one that was left: %v", passed, codes)
				}
			})
		}
	}
}
