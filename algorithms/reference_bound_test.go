package algorithms_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// bounded is an algorithm and the bound that its documentation has: units in any
// span, both ends in it, all in µs.
type bounded struct {
	name    string
	p       *algorithms.Policy
	bound   func(span int64) int64
	reached bool // the bound is reached in any span
	first   bool // windows or steps are counted from a first charge
}

// bounds have Periods of a few microseconds, so that everything can be tried.
func bounds(t *testing.T) (all []bounded) {
	for _, l := range []limit{
		{Count: 1, Period: 4 * time.Microsecond},
		{Count: 2, Period: 5 * time.Microsecond},
		{Count: 3, Period: 4 * time.Microsecond},
		{Count: 4, Period: 6 * time.Microsecond},
	} {
		count, period := l.Count, l.Period.Microseconds()
		add := func(a algorithms.Algorithm, l limit, bound func(span int64) int64) *bounded {
			all = append(all, bounded{name: fmt.Sprintf("%T%+v, %v", a, a, l), p: policy(t, a, l), bound: bound})
			return &all[len(all)-1]
		}
		up := func(span, period int64) int64 { return (span + period - 1) / period }
		window := func(span int64) int64 { return count * (up(span, period) + 1) }
		more := l.WithBurst(count + 2)
		add(algorithms.GCRA{}, more, func(span int64) int64 { return count + 2 + count*span/period })
		add(algorithms.TokenBucket{Stepped: true}, more, func(span int64) int64 { return count + 2 + count*up(span, period) }).first = true
		add(algorithms.FixedWindow{}, l, window).first = true
		add(algorithms.FixedWindow{Aligned: true, Offset: 3 * time.Microsecond}, l, window).reached = true
		add(algorithms.SlidingCounter{}, l, func(span int64) int64 { return count + count*span/period })
		if count < 4 { // else there are too many logs
			add(algorithms.SlidingLog{}, l, func(span int64) int64 { return count * (span/period + 1) }).reached = true
		}
		for _, length := range []int64{3, 6} {
			b := algorithms.Ban{Strikes: count, Within: l.Period, For: time.Duration(length) * time.Microsecond}
			add(b, l, func(span int64) int64 { return count * (up(span, min(period, length)) + 1) }).first = true
		}
	}
	return all
}

// A caller who tries everything gets no more than the bound in any span of up to
// two Periods and a half, from any state that three Periods can lead to.
func TestNoWorseThanTheBound(t *testing.T) {
	for _, b := range bounds(t) {
		period := b.p.Limit().Period.Microseconds()
		most := make([]int64, 5*period/2+1)
		e := everything{b.p, map[moment]int64{}}
		reached := map[words]algorithms.State{{}: nil}
		for now := -2 * period; now <= period; now++ {
			after := map[words]algorithms.State{}
			for _, state := range reached {
				for span := range most {
					most[span] = max(most[span], e.most(state, now, int64(span)))
				}
				e.each(state, now, func(_ int64, next algorithms.State) { after[wordsOf(next)] = next })
			}
			reached = after
		}
		for span, got := range most {
			if want := b.bound(int64(span)); got > want || got < want && b.reached {
				t.Errorf("%s: at worst %d units in %d µs, the bound is %d", b.name, got, span, want)
			}
		}
	}
}

// words are a state of at most four words, to be a key of a map.
type words struct {
	n int
	s [4]int64
}

func wordsOf(s algorithms.State) words {
	return words{len(s), [4]int64(append(s[:len(s):len(s)], 0, 0, 0, 0))}
}

// everything is what a caller can do.
type everything struct {
	p    *algorithms.Policy
	seen map[moment]int64
}

type moment struct {
	now, span int64
	state     words
}

// each calls f with the state after 0, 1, 2, … units, as many as pass.
func (e *everything) each(s algorithms.State, now int64, f func(units int64, next algorithms.State)) {
	f(0, s)
	_, look := e.p.Decide(nil, s, now, 0, 0)
	for units := int64(1); units <= look.Remaining; units++ {
		next, _ := e.p.Decide(nil, s, now, units, 0)
		f(units, next)
	}
}

// most is the most units from now on until now + span.
func (e *everything) most(s algorithms.State, now, span int64) int64 {
	id := moment{now, span, wordsOf(s)}
	best, ok := e.seen[id]
	if !ok {
		e.each(s, now, func(units int64, next algorithms.State) {
			if span > 0 {
				units += e.most(next, now+1, span-1)
			}
			best = max(best, units)
		})
		e.seen[id] = best
	}
	return best
}

// What is given back by who took it, at its true age, makes room for no more than
// that: the units that are kept stay within the bound. (Not so within 10 ms of a
// window or a step that is counted from a first charge, because an age may seem
// that much longer.)
func TestGiveBacksKeepTheBound(t *testing.T) {
	seed := rand.Uint64()
	for _, b := range bounds(t) {
		if b.first {
			continue
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 500 {
			taken := b.takeAndGiveBack(rnd)
			for i, a := range taken {
				kept := int64(0)
				for _, last := range taken[i:] {
					kept += last.units
					if span := last.at - a.at; kept > b.bound(span) {
						t.Fatalf("%s, seed %d: %d units in %d µs, the bound is %d: %v", b.name, seed, kept, span, b.bound(span), taken)
					}
				}
			}
		}
	}
}

// takeAndGiveBack is what is kept of random charges.
func (b *bounded) takeAndGiveBack(rnd *rand.Rand) (taken []admitted) {
	period := b.p.Limit().Period.Microseconds()
	state, now := algorithms.State(nil), -2*period
	for range 30 {
		now += []int64{0, 0, 0, 1, 1, 2, rnd.Int64N(period)}[rnd.IntN(7)]
		if len(taken) > 0 && rnd.IntN(3) == 0 {
			a := &taken[rnd.IntN(len(taken))]
			units := rnd.Int64N(a.units + 1)
			state, _ = b.p.Decide(nil, state, now, -units, now-a.at)
			a.units -= units
		} else if _, look := b.p.Decide(nil, state, now, 0, 0); look.Remaining > 0 {
			units := 1 + rnd.Int64N(look.Remaining)
			state, _ = b.p.Decide(nil, state, now, units, 0)
			taken = append(taken, admitted{now, units})
		}
	}
	return taken
}
