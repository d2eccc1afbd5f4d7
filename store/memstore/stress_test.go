package memstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// Whatever many callers do at once, with a clock that jumps both ways, the tables
// stay sound and all is freed in the end.
func TestStress(t *testing.T) {
	seed := rand.Uint64()
	var policies []*algorithms.Policy
	for i, l := range []algorithms.Limit{algorithms.PerSecond(1), algorithms.PerMinute(3), algorithms.PerSecond(100), {Count: 2, Period: 50 * time.Millisecond, Burst: 5}, algorithms.PerDay(2)} {
		for _, a := range []algorithms.Algorithm{algorithms.GCRA{}, stretching{}} {
			policies = append(policies, newPolicy(t, "p"+strconv.Itoa(i%3), a, l)) // some limits have one name
		}
	}
	for _, room := range []int{1, 2, 7, 50, 3000} {
		var now atomic.Int64
		now.Store(1_700_000_000_000_000)
		s := New(Config{MaxKeys: room, Clock: func() time.Time { return time.UnixMicro(now.Load()) }})
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(n)))
				for range 1000 {
					charges := randomCharges(rnd, policies, 2*room+3)
					err := s.Take(context.Background(), charges, make([]algorithms.Result, len(charges)))
					if err != nil && !errors.Is(err, store.ErrDuplicate) && !errors.Is(err, ErrFull) {
						t.Errorf("seed %d: %v", seed, err)
					}
					now.Add(rnd.Int64N(2000))
					switch rnd.IntN(300) {
					case 0:
						now.Add(rnd.Int64N(2_000_000))
					case 1:
						now.Add(-rnd.Int64N(2_000_000))
					case 2:
						s.sweepAll()
					case 3:
						s.check(t)
					}
				}
			})
		}
		wg.Wait()
		s.check(t)
		now.Add((1000 * 24 * time.Hour).Microseconds())
		s.sweepAll()
		s.check(t)
		if s.Len() != 0 || t.Failed() {
			t.Fatalf("seed %d, room %d: %d keys are left", seed, room, s.Len())
		}
	}
}

func randomCharges(rnd *rand.Rand, policies []*algorithms.Policy, keys int) (charges []store.Charge) {
	for range 1 + rnd.IntN(5) {
		c := store.Charge{
			Policy: policies[rnd.IntN(len(policies))], Key: strconv.Itoa(rnd.IntN(keys)),
			Mode: store.Mode(rnd.IntN(3)), Cost: rnd.Int64N(8) - 3,
		}
		if c.Mode == store.Strike {
			c.Cost = max(c.Cost, -c.Cost)
		}
		if rnd.IntN(10) == 0 {
			c.Mode, c.Cost = store.Forget, 0
		}
		if c.Cost < 0 {
			c.Age = time.Duration(rnd.Int64N(int64(time.Second)))
		}
		charges = append(charges, c)
	}
	return charges
}
