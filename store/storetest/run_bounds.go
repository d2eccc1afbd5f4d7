package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// bounds are limits at the ends of what some algorithm takes, and just beyond.
func bounds() []algorithms.Limit {
	const (
		most    = 1 << 53
		µs      = time.Microsecond
		window  = 1 << 51 * µs // the longest
		longest = math.MaxInt64 / time.Second * time.Second
		odd     = math.MaxInt64 / µs * µs
	)
	return []algorithms.Limit{
		{Count: 1, Period: µs}, {Count: 1, Period: µs, Burst: 1}, {Count: 1, Period: µs, Burst: most}, {Count: most, Period: µs}, {Count: most, Period: µs, Burst: 1},
		{Count: 1, Period: window}, {Count: 1, Period: window + µs}, {Count: most, Period: window}, {Count: most, Period: window, Burst: 1}, {Count: 1 << 51, Period: window},
		{Count: 1, Period: longest}, {Count: most, Period: longest}, {Count: 1, Period: longest, Burst: 900_000}, {Count: 1, Period: odd}, {Count: most, Period: odd},
		{Count: algorithms.MaxLog, Period: µs}, {Count: algorithms.MaxLog, Period: window}, {Count: algorithms.MaxLog + 1, Period: window},
		{Count: most - 1, Period: time.Second, Burst: most - 1}, {Count: 1, Period: time.Hour, Burst: 2_500_000_000},
	}
}

// checkBounds: sentences 2 and 11 where numbers are as large or as small as they
// can be. What an algorithm or the store does not take it refuses by an error that
// says so; the rest is decided as the model does.
func (f *fixture) checkBounds() {
	f.Helper()
	rnd := rand.New(rand.NewPCG(f.o.Seed, 2))
	m := newModel(f.clock)
	for i, l := range bounds() {
		var mistake *algorithms.FieldError
		p, err := algorithms.NewPolicy(fmt.Sprintf("p%d", i), f.a, l)
		if err != nil {
			if !errors.As(err, &mistake) {
				f.Errorf("%v: %v, which is no *FieldError", l, err)
			}
			continue
		}
		if f.store.Validate(p) != nil { // then it must not be charged either
			if _, err := store.Take(context.Background(), f.store, p, "k", 1); !errors.Is(err, errors.ErrUnsupported) && !errors.As(err, &mistake) {
				sentence(11).broke(f, "%v, which Validate refuses, is charged: %v", l, err)
			}
			continue
		}
		most := 2
		if f.store.Validate(p, p) != nil {
			most = 1
		}
		for step := range max(8, f.o.Steps/30) {
			c := extreme(rnd, p)
			for n := 1; n <= most; n++ { // a store may have a way of its own for one charge
				charges := make([]store.Charge, n)
				for j := range charges {
					c.Key = fmt.Sprintf("%d of %d", j, n)
					charges[j] = c
				}
				if _, ok := f.same(m, step, charges); !ok {
					return
				}
			}
			if rnd.IntN(4) == 0 {
				f.clock.Advance(time.Millisecond)
			}
		}
	}
}

// extreme is a charge whose numbers are at some bound.
func extreme(rnd *rand.Rand, p *algorithms.Policy) store.Charge {
	_, look := p.Decide(nil, nil, 0, 0, 0)
	all, most := look.Limit, int64(1)<<53
	costs := []int64{0, 1, 1, all - 1, all, all, all + 1, most, most + 1, most + 2, math.MaxInt64 - 1, math.MaxInt64, -1, -all, -all - 1, -most - 1, math.MinInt64 + 1, math.MinInt64}
	ages := []time.Duration{0, 0, 1, time.Microsecond, time.Second, p.Limit().Period, math.MaxInt64 - 1, math.MaxInt64}
	c := store.Charge{Policy: p, Cost: costs[rnd.IntN(len(costs))], Age: ages[rnd.IntN(len(ages))]}
	if rnd.IntN(3) == 0 {
		c.Mode = store.Mode(rnd.IntN(4))
	}
	switch {
	case c.Mode == store.Strike:
		c.Cost = max(0, c.Cost)
	case c.Mode == store.Forget:
		c.Cost, c.Age = 0, 0
	}
	return c
}
