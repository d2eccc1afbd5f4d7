package algorithms_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// oracle is an algorithm as its documentation tells it: slow, and easy to
// believe. It remembers each charge that was let in, and answers two questions
// about any time that is not before the last charge. What a Result says beyond
// that is found from these two by search, never by a formula.
type oracle interface {
	left(at int64) int64             // the units that could be taken then
	fresh(at int64) bool             // whether the key is as good as new then
	take(now, units int64)           // lets them in
	giveBack(now, units, age int64)  // of a charge that was made so long ago
	give() (capacity, longest int64) // the most units at once, the longest wait
	edges(age int64) (ages []int64)  // ages at which a give-back may go another way
}

// admitted is a charge that was let in, less what was given back of it.
type admitted struct{ at, units int64 }

func sum(list []admitted) (units int64) {
	for _, a := range list {
		units += a.units
	}
	return units
}

// takeOff takes units off the charges of a list, the oldest first.
func takeOff(list []admitted, units int64) {
	for i := range list {
		off := min(units, list[i].units)
		list[i].units -= off
		units -= off
	}
}

// answer makes a charge and says what Decide should.
func answer(o oracle, now, cost, age int64) algorithms.Result {
	capacity, longest := o.give()
	r := algorithms.Result{Limit: capacity}
	want := max(cost, 1)
	switch {
	case cost < 0:
		o.giveBack(now, -max(cost, -math.MaxInt64), max(age, 0))
	case cost > capacity:
		r.RetryAfter = algorithms.Never
	}
	if cost >= 0 {
		r.Limited = o.left(now) < want
	}
	if cost > 0 && !r.Limited {
		o.take(now, cost)
	}
	r.Remaining = o.left(now)
	if cost >= 0 && cost <= capacity {
		r.RetryAfter = first(longest, func(wait int64) bool { return o.left(now+wait) >= want })
	}
	r.ResetAfter = first(longest, func(wait int64) bool { return o.fresh(now + wait) })
	return r
}

// first is the shortest wait, in µs, from which on something is so.
func first(longest int64, so func(wait int64) bool) time.Duration {
	no, yes := int64(-1), longest
	for yes-no > 1 {
		if wait := no + (yes-no)/2; so(wait) {
			yes = wait
		} else {
			no = wait
		}
	}
	return time.Duration(yes) * time.Microsecond
}

// end is beyond what Decide takes as a time.
const end = 1<<52 + 1

// walk takes a policy and its oracle through random charges, with a clock that
// never steps back, and compares each answer. It begins anew now and then, at
// times before and after 1970.
func walk(t *testing.T, name string, p *algorithms.Policy, steps int, anew func() oracle) {
	t.Helper()
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	period := p.Limit().Period.Microseconds()
	starts := []int64{1_700_000_000_000_000, 0, -1, -1 - rnd.Int64N(3*period), -1_700_000_000_000_000, 1 - end}
	var (
		w     walker
		state algorithms.State
		until int
	)
	for step := range steps {
		if step >= until || w.now >= end {
			w = walker{rnd: rnd, o: anew(), period: period, now: starts[rnd.IntN(len(starts))]}
			state, until = nil, step+1+rnd.IntN(400)
		}
		cost, age := w.charge()
		next, got := p.Decide(nil, state, w.now, cost, age)
		want := answer(w.o, w.now, cost, age)
		made := cost != 0 && !got.Limited
		if got != want || made && (len(next) == 0) != (want.ResetAfter == 0) {
			t.Fatalf("%s, %v, seed %d, step %d: cost %d, age %d at %d of %v makes %v\n%+v; the oracle says\n%+v",
				name, p.Limit(), seed, step, cost, age, w.now, state, next, got, want)
		}
		state = next
		w.move(got, cost)
	}
}

// walker chooses what comes next.
type walker struct {
	rnd    *rand.Rand
	o      oracle
	period int64
	now    int64
	taken  []admitted // the last charges that passed
}

// charge is a cost and, of a give-back, an age: mostly those of a charge that was
// made, or an age at which something changes.
func (w *walker) charge() (cost, age int64) {
	c, _ := w.o.give()
	some := 1 + w.rnd.Int64N(c)
	costs := []int64{1, 1, 1, 0, some, some, 1 + w.rnd.Int64N(min(c, 3)), c, c + 1, math.MaxInt64, -1, -some, -some, -c, math.MinInt64}
	cost = costs[w.rnd.IntN(len(costs))]
	if cost >= 0 {
		return cost, []int64{0, w.rnd.Int64(), math.MinInt64}[w.rnd.IntN(3)] // no matter
	}
	if len(w.taken) > 0 {
		a := w.taken[w.rnd.IntN(len(w.taken))]
		age = w.now - a.at
		if w.rnd.IntN(2) == 0 && cost > math.MinInt64 {
			cost = -a.units
		}
	}
	ages := w.o.edges(age)
	return cost, ages[w.rnd.IntN(len(ages))]
}

// around are ages about one that was measured.
func around(age, period int64) []int64 {
	return []int64{
		0, math.MinInt64, math.MaxInt64, period - 1, period, period + 1, age, age, age, age + 1, max(0, age-1),
		age + period/2, age + period/2 + 1, age + 9_999, age + 10_000, age + 10_001, age + period, 2 * period,
		age - 9_999, age - 10_000, age - 10_001,
	}
}

// move moves the clock to where something may happen.
func (w *walker) move(r algorithms.Result, cost int64) {
	if cost > 0 && !r.Limited {
		w.taken = append(w.taken, admitted{w.now, cost})
		w.taken = w.taken[max(0, len(w.taken)-20):]
	}
	retry, reset := max(0, r.RetryAfter.Microseconds()), r.ResetAfter.Microseconds()
	into := w.now % w.period
	if into < 0 {
		into += w.period
	}
	moves := []int64{
		0, 0, 0, 1, retry, retry - 1, reset, reset - 1, w.rnd.Int64N(retry + 2), w.rnd.Int64N(reset + 2),
		w.period - into, w.period - into - 1, w.rnd.Int64N(w.period/8 + 2), w.rnd.Int64N(w.period), w.rnd.Int64N(3 * w.period), w.rnd.Int64N(30_000),
	}
	w.now += max(0, moves[w.rnd.IntN(len(moves))])
}

// policy is a policy that is known to be valid.
func policy(t *testing.T, a algorithms.Algorithm, l limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy("p", a, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
