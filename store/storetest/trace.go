package storetest

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// trace is a walk of one key under one limit.
type trace struct {
	reporter
	Spec
	limit    algorithms.Limit
	params   []int64
	capacity int64
	rnd      *rand.Rand

	state algorithms.State
	now   int64
}

// longest is the longest wait that a Result can tell, in µs.
const longest = 1 << 53

func newTrace(r reporter, s Spec, l algorithms.Limit) *trace {
	r.Helper()
	p, err := s.Algorithm.Params(l)
	if err != nil {
		law(9).broke(r, "Params(%v): %v", l, err)
		return nil
	}
	tr := &trace{reporter: r, Spec: s, limit: l, params: p, now: t0, rnd: rand.New(rand.NewPCG(s.Seed, uint64(l.Count)))}
	_, look := tr.decide(nil, tr.now, 0, 0)
	tr.capacity = look.Limit
	if look.Limited || look.Remaining != look.Limit || look.Limit < 1 || look.ResetAfter != 0 {
		law(3).broke(r, "a key never seen is %+v", look)
	}
	return tr
}

// decide calls Decide and checks what must hold of any answer.
func (tr *trace) decide(s algorithms.State, now, cost, age int64) (algorithms.State, algorithms.Result) {
	tr.Helper()
	before := slices.Clone(s)
	dst := algorithms.State{-77}
	next, r := tr.Algorithm.Decide(dst, s, now, tr.params, cost, age)
	if !slices.Equal(s, before) {
		law(1).broke(tr, "Decide changed the state it was given from %v to %v", before, s)
	}
	if len(next) == 0 || next[0] != -77 {
		law(1).broke(tr, "Decide did not append to dst: %v", next)
		return nil, r
	}
	next = next[1:]
	if (r.Limited || cost == 0) && !slices.Equal(next, s) {
		law(1).broke(tr, "cost %d at %d: state %v became %v, limited %v, seed %d", cost, now, s, next, r.Limited, tr.Seed)
	}
	never := r.RetryAfter == algorithms.Never
	if never != (cost > r.Limit) {
		law(2).broke(tr, "cost %d, capacity %d: RetryAfter %v", cost, r.Limit, r.RetryAfter)
	}
	if r.Remaining < 0 || r.Remaining > r.Limit || r.Limit < 1 || (r.RetryAfter < 0 && !never) || r.ResetAfter < 0 ||
		r.RetryAfter.Microseconds() > longest || r.ResetAfter.Microseconds() > longest ||
		r.RetryAfter%time.Microsecond != 0 && !never || r.ResetAfter%time.Microsecond != 0 {
		law(9).broke(tr, "cost %d, age %d at %d from %v: %+v", cost, age, now, s, r)
	}
	for _, n := range next {
		if n > 1<<53 || n < -(1<<53) {
			law(9).broke(tr, "state %v does not fit into a double", next)
		}
	}
	return next, r
}

// walk takes random steps in time and cost, and checks laws 2, 3 and 5 at each.
// back lets the clock step back, too.
func (tr *trace) walk(steps int, back bool) {
	tr.Helper()
	tr.state, tr.now = nil, t0
	var last algorithms.Result
	for range steps {
		tr.step(last, back)
		cost, age := tr.cost(), int64(0)
		if cost < 0 {
			age = tr.rnd.Int64N(1 + max(0, last.ResetAfter.Microseconds()))
		}
		state, r := tr.decide(tr.state, tr.now, cost, age)
		tr.checkRetry(state, r, cost)
		tr.checkRemaining(state, r, cost)
		tr.checkReset(state, r)
		tr.state, last = state, r
	}
}

// step moves the clock to where something may happen.
func (tr *trace) step(last algorithms.Result, back bool) {
	retry, reset := max(0, last.RetryAfter.Microseconds()), max(0, last.ResetAfter.Microseconds())
	moves := []int64{0, 0, 1, retry, retry - 1, reset, reset - 1, tr.rnd.Int64N(2 + reset), tr.rnd.Int64N(2 + retry), tr.interval()}
	if back {
		moves = append(moves, -1, -tr.rnd.Int64N(2+reset), -tr.rnd.Int64N(2+2*reset))
	}
	move := moves[tr.rnd.IntN(len(moves))]
	if move < 0 && !back {
		move = 0
	}
	if now := tr.now + move; now < 1<<52 && now > 0 {
		tr.now = now
	}
}

// interval is about the time that a unit takes.
func (tr *trace) interval() int64 {
	return max(1, int64(float64(tr.limit.Period.Microseconds())/float64(tr.limit.Count)))
}

func (tr *trace) cost() int64 {
	c := tr.capacity
	costs := []int64{1, 1, 1, 1, 0, 1 + tr.rnd.Int64N(c), 1 + tr.rnd.Int64N(c), c, c - 1, c + 1, math.MaxInt64, -1, -1 - tr.rnd.Int64N(c), math.MinInt64}
	return costs[tr.rnd.IntN(len(costs))]
}

// checkRetry: law 2, at the moment and 1 µs before it.
func (tr *trace) checkRetry(s algorithms.State, r algorithms.Result, cost int64) {
	tr.Helper()
	wait := r.RetryAfter.Microseconds()
	if cost < 0 || r.RetryAfter == algorithms.Never || wait == longest || tr.now+wait > 1<<52 {
		return
	}
	if _, then := tr.decide(s, tr.now+wait, cost, 0); then.Limited {
		law(2).broke(tr, "cost %d, %v at %d: RetryAfter %v, but then %+v; seed %d", cost, s, tr.now, r.RetryAfter, then, tr.Seed)
	}
	if wait == 0 {
		return
	}
	for _, at := range []int64{wait - 1, tr.rnd.Int64N(wait)} {
		if _, then := tr.decide(s, tr.now+at, cost, 0); !then.Limited {
			law(2).broke(tr, "cost %d, %v at %d: RetryAfter %v, but %d µs are enough; seed %d", cost, s, tr.now, r.RetryAfter, at, tr.Seed)
		}
	}
}

// checkRemaining: law 3.
func (tr *trace) checkRemaining(s algorithms.State, r algorithms.Result, cost int64) {
	tr.Helper()
	if r.Limit != tr.capacity {
		law(3).broke(tr, "Limit is %d and was %d", r.Limit, tr.capacity)
	}
	if r.Remaining > 0 {
		if _, then := tr.decide(s, tr.now, r.Remaining, 0); then.Limited || then.Remaining != 0 {
			law(3).broke(tr, "%v at %d: Remaining %d, but taking it is %+v; seed %d", s, tr.now, r.Remaining, then, tr.Seed)
		}
	}
	if _, then := tr.decide(s, tr.now, r.Remaining+1, 0); !then.Limited {
		law(3).broke(tr, "%v at %d: Remaining %d, but one more passes; seed %d", s, tr.now, r.Remaining, tr.Seed)
	}
	if _, look := tr.decide(s, tr.now, 0, 0); look.Limited != (look.Remaining == 0) || look.Remaining != r.Remaining {
		law(3).broke(tr, "%v at %d: Remaining %d, a look is %+v; seed %d", s, tr.now, r.Remaining, look, tr.Seed)
	}
}

// checkReset: law 5. The reset is one moment, seen from any time before it, and
// from then on the key answers like a fresh one.
func (tr *trace) checkReset(s algorithms.State, r algorithms.Result) {
	tr.Helper()
	reset := r.ResetAfter.Microseconds()
	if tr.now+reset > 1<<52 {
		return
	}
	if reset > 0 {
		sooner := tr.rnd.Int64N(reset)
		if _, look := tr.decide(s, tr.now+sooner, 0, 0); look.ResetAfter.Microseconds() != reset-sooner {
			law(5).broke(tr, "%v at %d: ResetAfter %v, but %d µs later %v; seed %d", s, tr.now, r.ResetAfter, sooner, look.ResetAfter, tr.Seed)
		}
	}
	now, used, fresh := tr.now+reset, s, algorithms.State(nil)
	for range 4 {
		cost := 1 + tr.rnd.Int64N(tr.capacity)
		a, ra := tr.decide(used, now, cost, 0)
		b, rb := tr.decide(fresh, now, cost, 0)
		if ra != rb {
			law(5).broke(tr, "%v at %d: ResetAfter %v, but then cost %d gives %+v, a fresh key %+v; seed %d", s, tr.now, r.ResetAfter, cost, ra, rb, tr.Seed)
			return
		}
		used, fresh = a, b
		if rb.ResetAfter.Microseconds() > 1<<52-now {
			return
		}
		now += tr.rnd.Int64N(2 + rb.ResetAfter.Microseconds()/2)
	}
}

// mulDiv is a × b / c rounded down.
func mulDiv(a, b, c int64) *big.Int {
	n := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	return n.Div(n, big.NewInt(c))
}
