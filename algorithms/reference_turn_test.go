package algorithms_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// A charge's turn is when what was in the bucket before it has drained: at the
// theoretical arrival time of GCRA. Both sides of it are rounded to the tick that
// the bucket drains by, and what finds it empty waits for nothing.
func TestTurnAgainstFractions(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for l, tick := range map[limit]int64{
		algorithms.PerMinute(30).WithBurst(16):       1,
		{Count: 7, Period: 3 * time.Second}:          1,
		{Count: 3, Period: 7 * time.Microsecond}:     1,
		{Count: 7, Period: year, Burst: 900_000}:     1_000_000,
		algorithms.PerDay(1_000_003):                 1000,
		algorithms.PerSecond(1_000_000).WithBurst(5): 1,
	} {
		p := policy(t, algorithms.LeakyBucket{}, l)
		ref := newReference(l)
		state, now := algorithms.State(nil), int64(0)
		for range 2000 {
			now += rnd.Int64N(3*l.Period.Microseconds()/l.Count + 2)
			cost := 1 + rnd.Int64N(3)
			turn := new(big.Rat).Sub(ref.tat, rat(now))
			if turn.Sign() < 0 {
				turn.SetInt64(0)
			}
			var r algorithms.Result
			state, r = p.Decide(nil, state, now, cost, 0)
			got, ok := p.Turn(cost, r)
			if r.Limited {
				turn.SetInt64(0)
			} else {
				ref.take(now, cost, 0)
			}
			off := new(big.Rat).Sub(rat(got.Microseconds()), turn)
			empty := turn.Sign() == 0 && got != 0
			if !ok || got < 0 || got > r.ResetAfter || off.Cmp(rat(tick)) >= 0 || off.Cmp(rat(-tick)) < 0 || tick == 1 && empty {
				t.Fatalf("seed %d, %v, cost %d at %d: %v, %v of %+v; fractions say %v µs", seed, l, cost, now, got, ok, r, turn.FloatString(3))
			}
		}
	}
}

// A look, a give-back and a charge above the capacity wait for nothing, and some
// algorithms keep no queue.
func TestTurnOfOthers(t *testing.T) {
	l := algorithms.PerMinute(3)
	queue := policy(t, algorithms.TokenBucket{}, l)
	state, _ := queue.Decide(nil, nil, 0, 2, 0)
	for cost, want := range map[int64]time.Duration{1: 40 * time.Second, 0: 0, -1: 0, 2: 0, 4: 0} {
		_, r := queue.Decide(nil, state, 0, cost, 0)
		if got, ok := queue.Turn(cost, r); got != want || !ok {
			t.Errorf("cost %d: %v, %v, want %v", cost, got, ok, want)
		}
	}
	for a, want := range map[algorithms.Algorithm]bool{
		algorithms.GCRA{}: true, algorithms.TokenBucket{}: true, algorithms.LeakyBucket{}: true,
		algorithms.TokenBucket{Stepped: true}: false, algorithms.LeakyBucket{Stepped: true}: false,
		algorithms.FixedWindow{}: false, algorithms.SlidingCounter{}: false, algorithms.SlidingLog{}: false,
	} {
		p := policy(t, a, l)
		_, r := p.Decide(nil, nil, 0, 1, 0)
		if _, ok := p.Turn(1, r); ok != want {
			t.Errorf("%T%+v keeps a queue: %v", a, a, ok)
		}
	}
	// A part of a tick that is left of the charge before is over before the tick is.
	coarse := policy(t, algorithms.GCRA{}, algorithms.PerDay(1_000_003))
	state, _ = coarse.Decide(nil, nil, 0, 1, 0) // drains in 86.4 ms
	_, r := coarse.Decide(nil, state, 86_500, 1, 0)
	if got, _ := coarse.Turn(1, r); got != 0 {
		t.Errorf("in the tick in which the bucket is empty: %v, the reset is in %v", got, r.ResetAfter)
	}
	// A charge that takes centuries and finds the bucket empty waits for no more than
	// what was cut off from its reset, a part of a tick.
	slow := policy(t, algorithms.GCRA{}, limit{Count: 1, Period: 1_000_000 * time.Second, Burst: 9_000_000_000})
	for _, cost := range []int64{1, 9000, 10_000, 20_000, 9_000_000_000} {
		_, r = slow.Decide(nil, nil, 0, cost, 0)
		if got, _ := slow.Turn(cost, r); got < 0 || got >= time.Second {
			t.Errorf("cost %d of nothing used: %v, the reset is in %v", cost, got, r.ResetAfter)
		}
	}
}
