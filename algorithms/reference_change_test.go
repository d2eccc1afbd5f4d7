package algorithms_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// promises checks that an answer is kept by the policy that gave it: what remains
// can be taken, and no more; at the retry the charge passes, and not before; at
// the reset the key is as good as new, and not before.
func promises(t *testing.T, p *algorithms.Policy, s algorithms.State, now, cost int64, r algorithms.Result) {
	t.Helper()
	ask := func(after, cost int64) algorithms.Result {
		_, r := p.Decide(nil, s, now+after, cost, 0)
		return r
	}
	retry, reset := r.RetryAfter.Microseconds(), r.ResetAfter.Microseconds()
	switch {
	case r.Remaining < 0 || r.Remaining > r.Limit:
	case r.Remaining > 0 && ask(0, r.Remaining).Limited || !ask(0, r.Remaining+1).Limited:
	case cost >= 0 && cost <= r.Limit && (ask(retry, cost).Limited || retry > 0 && !ask(retry-1, cost).Limited):
	case ask(reset, 0) != algorithms.Result{Limit: r.Limit, Remaining: r.Limit} || reset > 0 && ask(reset-1, 0).ResetAfter != time.Microsecond:
	default:
		return
	}
	t.Errorf("%s %v at %d, cost %d: %+v is not kept; the state is %v", p.Algorithm().Name(), p.Limit(), now, cost, r, s)
}

// changing is an algorithm whose limit, or whose form, changes.
type changing struct {
	name    string
	policy  func(l limit, form int) (*algorithms.Policy, error)
	forms   int
	bursts  bool // Burst may be given
	shorter bool // a shorter Period frees, and never takes
}

func allChanging() []changing {
	named := func(name string, bursts, shorter bool, forms ...algorithms.Algorithm) changing {
		return changing{name, func(l limit, form int) (*algorithms.Policy, error) {
			return algorithms.NewPolicy("p", forms[form], l)
		}, len(forms), bursts, shorter}
	}
	return []changing{
		named("GCRA", true, true, algorithms.GCRA{}),
		named("leaky", true, true, algorithms.LeakyBucket{}, algorithms.LeakyBucket{Stepped: true}),
		named("token", true, true, algorithms.TokenBucket{}, algorithms.TokenBucket{Stepped: true}),
		named("window", false, true, algorithms.FixedWindow{}, algorithms.FixedWindow{Aligned: true},
			algorithms.FixedWindow{Aligned: true, Offset: -90 * time.Second}),
		named("counter", false, false, algorithms.SlidingCounter{}), // what the last window used comes nearer with that
		named("log", false, true, algorithms.SlidingLog{}),
		{"ban", func(l limit, form int) (*algorithms.Policy, error) {
			return algorithms.Ban{Strikes: l.Count, Within: l.Period, For: 90 * time.Second}.Policy("p")
		}, 1, false, true},
	}
}

// A limit that changes with every other charge leaves an answer that is kept; a
// raise refuses no one who would have passed, and frees the units that it adds,
// and a cut frees none.
func TestLimitsUpAndDown(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	for _, c := range allChanging() {
		for form := range c.forms {
			c.upAndDown(t, rand.New(rand.NewPCG(seed, 0)), form)
		}
	}
}

func (c changing) upAndDown(t *testing.T, rnd *rand.Rand, form int) {
	choose := func(l limit) (*algorithms.Policy, limit) {
		if l.Count = 1 + rnd.Int64N(12); l.Period == 0 {
			l.Period = time.Minute << rnd.IntN(3)
		}
		if c.bursts {
			l.Burst = l.Count + rnd.Int64N(12)
		}
		p, err := c.policy(l, form)
		if err != nil {
			t.Fatal(err)
		}
		return p, l
	}
	p, l := choose(limit{})
	s, now, last := algorithms.State(nil), int64(-3_600_000_000), int64(0)
	for range 3000 {
		// Charge under one limit …
		now += []int64{0, 0, 1, rnd.Int64N(20_000_000), rnd.Int64N(100_000_000)}[rnd.IntN(5)]
		cost := []int64{1, 1, 1 + rnd.Int64N(l.Count), l.Count, 0, -1 - rnd.Int64N(l.Count)}[rnd.IntN(6)]
		next, r := p.Decide(nil, s, now, cost, rnd.Int64N(1_000_000))
		if cost != 0 && !r.Limited {
			last = now
		}
		s = next
		promises(t, p, s, now, cost, r)
		// … and look under another.
		q, to := choose([]limit{{}, {Period: l.Period}}[rnd.IntN(2)])
		later := now + []int64{0, rnd.Int64N(50_000_000)}[rnd.IntN(2)]
		_, before := p.Decide(nil, s, later, 0, 0)
		_, after := q.Decide(nil, s, later, 0, 0)
		promises(t, q, s, later, 0, after)
		added, same := after.Limit-before.Limit, to.Period == l.Period
		up := to.Count >= l.Count && added >= 0 && (same || to.Period < l.Period && c.shorter)
		down := to.Count <= l.Count && added <= 0 && same
		switch {
		case up && after.Remaining < before.Remaining,
			up && same && later == last && !before.Limited && after.Remaining != before.Remaining+added,
			down && after.Remaining > before.Remaining:
			t.Fatalf("%s, form %d: %v used under %v until %d; at %d %+v, and under %v %+v", c.name, form, s, l, last, later, before, to, after)
		}
		if rnd.IntN(4) == 0 {
			p, l, last = q, to, -end // no charge was made under it yet
		}
	}
}

// What was used under one form of an algorithm is used under another with the same
// name, as long as both are in the window or the step that it was used in. The
// answers after a change are kept.
func TestFormsShareWhatWasUsed(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	for _, c := range allChanging() {
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 2000 {
			l := limit{Count: 1 + rnd.Int64N(12), Period: 4 * time.Minute}
			if c.bursts {
				l.Burst = l.Count + rnd.Int64N(12)
			}
			from, err := c.policy(l, rnd.IntN(c.forms))
			if err != nil {
				t.Fatal(err)
			}
			to, err := c.policy(l, rnd.IntN(c.forms))
			if err != nil {
				t.Fatal(err)
			}
			// From 90 s past an hour to four minutes past it, all is in one window of any form.
			opened := 95_000_000 + 3_600_000_000*rnd.Int64N(100)
			s, r := from.Decide(nil, nil, opened, 1+rnd.Int64N(l.Count), 0)
			_, same := to.Decide(nil, s, opened, 0, 0)
			now := opened + rnd.Int64N(120_000_000)
			if cost := rnd.Int64N(r.Remaining + 1); cost > 0 {
				s, _ = from.Decide(nil, s, now, cost, 0)
			}
			_, before := from.Decide(nil, s, now, 0, 0)
			_, after := to.Decide(nil, s, now, 0, 0)
			promises(t, to, s, now, 0, after)
			// Between two steps of the one bucket, the other drains.
			differ, drained := after.Remaining-before.Remaining, int64(0)
			if c.bursts && now > opened {
				drained = l.Count
			}
			if same.Remaining != r.Remaining || differ > drained || differ < -drained {
				t.Fatalf("%s, %v, forms %+v and %+v: %d remain of it at %d, and %d; then %v at %d: %d, and %d",
					c.name, l, from.Algorithm(), to.Algorithm(), r.Remaining, opened, same.Remaining, s, now, before.Remaining, after.Remaining)
			}
		}
	}
}
