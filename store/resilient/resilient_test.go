package resilient_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/resilient"
)

var errAway = errors.New("away")

// shared stands in for a store that can be away, or hang.
type shared struct {
	store.Store
	err   error
	hangs bool
	calls int
}

func (s *shared) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.calls++
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.err != nil {
		return s.err
	}
	return s.Store.Take(ctx, charges, results)
}

func perHour(t testing.TB, n int64) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerHour(n))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A day in the life of the chain.
func TestChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := &shared{Store: memstore.New(memstore.Config{})}
		var failed []error
		s := resilient.New(redis, resilient.Config{
			Replicas: 4,
			Failed:   func(_ context.Context, err error) { failed = append(failed, err) },
		})
		p := perHour(t, 8)
		if err := s.Validate(p); err != nil {
			t.Fatal(err)
		}
		take := func(key string) (algorithms.Result, time.Duration) {
			t.Helper()
			start := time.Now()
			r, err := store.Take(context.Background(), s, p, key, 1)
			if err != nil {
				t.Fatal(err)
			}
			return r, time.Since(start)
		}
		for range 8 {
			if r, _ := take("a"); r.Limited || r.Limit != 8 {
				t.Errorf("%+v", r)
			}
		}
		for range 100 { // one of which reaches the store
			if r, _ := take("a"); !r.Limited || r.Limit != 8 {
				t.Errorf("%+v", r)
			}
		}
		if redis.calls != 9 {
			t.Errorf("%d calls", redis.calls)
		}

		// It hangs: five requests wait 50 ms, then none. This replica has a fourth.
		redis.hangs = true
		for i := range 20 {
			r, took := take(string(rune('b' + i)))
			if wait := i < 5; (took == 50*time.Millisecond) != wait || took > 0 != wait {
				t.Errorf("request %d took %v", i, took)
			}
			if r.Limit != 2 || r.Limited {
				t.Errorf("request %d: %+v", i, r)
			}
		}
		if len(failed) != 20 || !errors.Is(failed[0], store.ErrTimeout) {
			t.Errorf("told %v", failed)
		}
		for i := range 100 { // one more fits, and then one denial is enough
			if r, took := take("b"); r.Limited != (i > 0) || took > 0 {
				t.Errorf("%+v after %v", r, took)
			}
		}
		if len(failed) != 22 {
			t.Errorf("told %d times", len(failed))
		}
		if last := failed[len(failed)-1]; !errors.Is(last, breaker.ErrOpen) {
			t.Errorf("told %v", last)
		}

		// And it is back, by itself.
		redis.hangs = false
		time.Sleep(time.Second + time.Millisecond)
		if r, _ := take("z"); r.Limit != 8 {
			t.Errorf("%+v", r)
		}
		if r, _ := take("y"); r.Limit != 8 {
			t.Errorf("%+v", r)
		}
	})
}

func TestFailOpen(t *testing.T) {
	s := resilient.New(&shared{Store: memstore.New(memstore.Config{}), err: errAway}, resilient.Config{FailOpen: true})
	for range 20 {
		if r, err := store.Take(context.Background(), s, perHour(t, 1), "k", 1); err != nil || r != (algorithms.Result{}) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	mem := memstore.New(memstore.Config{})
	for field, s := range map[string]store.Store{
		"store.Divide.n":          resilient.New(mem, resilient.Config{}),
		"store.Timeout.s":         resilient.New(nil, resilient.Config{Replicas: 1}),
		"store.Timeout.d":         resilient.New(mem, resilient.Config{Replicas: 1, Timeout: -1}),
		"breaker.Config.Failures": resilient.New(mem, resilient.Config{Replicas: 1, Breaker: breaker.Config{Failures: -1}}),
		"store.DenyCache.maxAge":  resilient.New(mem, resilient.Config{Replicas: 1, DenyFor: -1}),
		"store.DenyCache.maxKeys": resilient.New(mem, resilient.Config{Replicas: 1, DenyKeys: -1}),
		"memstore.Config.MaxKeys": resilient.New(mem, resilient.Config{Replicas: 1, Memory: memstore.Config{MaxKeys: -1}}),
	} {
		var e *algorithms.FieldError
		if err := s.Validate(perHour(t, 1)); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
