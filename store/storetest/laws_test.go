package storetest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// broken is GCRA with one mistake.
type broken struct {
	algorithms.GCRA
	params func(algorithms.Limit) ([]int64, error)
	decide func(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result)
}

func (b broken) Params(l algorithms.Limit) ([]int64, error) {
	if b.params != nil {
		return b.params(l)
	}
	return b.GCRA.Params(l)
}

func (b broken) Decide(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	if b.decide != nil {
		return b.decide(dst, s, now, p, cost, age)
	}
	return b.GCRA.Decide(dst, s, now, p, cost, age)
}

type (
	state  = algorithms.State
	result = algorithms.Result
)

var gcra algorithms.GCRA

// answer is a mistake in the answer.
func answer(change func(r *result, cost int64)) broken {
	return broken{decide: func(dst, s state, now int64, p []int64, cost, age int64) (state, result) {
		next, r := gcra.Decide(dst, s, now, p, cost, age)
		change(&r, cost)
		return next, r
	}}
}

// given is a mistake in what is decided on.
func given(change func(s state, now int64, p []int64, cost, age int64) (state, int64, int64)) broken {
	return broken{decide: func(dst, s state, now int64, p []int64, cost, age int64) (state, result) {
		s2, cost2, age2 := change(append(state(nil), s...), now, p, cost, age)
		next, r := gcra.Decide(dst, s2, now, p, cost2, age2)
		if r.Limited || cost == 0 {
			next = append(dst, s...)
		}
		return next, r
	}}
}

func compiled(change func(l *algorithms.Limit)) broken {
	return broken{params: func(l algorithms.Limit) ([]int64, error) {
		p, err := gcra.Params(l)
		if err != nil {
			return nil, err
		}
		burst := p[0]
		change(&l)
		if q, err := gcra.Params(l); err == nil {
			p = q
			p[0] = burst
		}
		return p, nil
	}}
}

// Each law is broken in some ways, and Laws must see each.
func TestLawsSeeMistakes(t *testing.T) {
	mistakes := []struct {
		law  law
		name string
		algo algorithms.Algorithm
	}{
		{1, "a refusal counts", broken{decide: func(dst, s state, now int64, p []int64, cost, age int64) (state, result) {
			next, r := gcra.Decide(dst, s, now, p, cost, age)
			if r.Limited && len(s) > 0 {
				next[len(next)-2]++
			}
			return next, r
		}}},
		{1, "a look makes a key", broken{decide: func(dst, s state, now int64, p []int64, cost, age int64) (state, result) {
			next, r := gcra.Decide(dst, s, now, p, cost, age)
			if cost == 0 && len(s) == 0 {
				next = append(next, 0, now, 1)
			}
			return next, r
		}}},
		{1, "the state is changed in place", broken{decide: func(dst, s state, now int64, p []int64, cost, age int64) (state, result) {
			next, r := gcra.Decide(dst, s, now, p, cost, age)
			if len(s) > 0 {
				s[0]++
			}
			return next, r
		}}},
		{2, "1 µs late", answer(func(r *result, _ int64) {
			if r.RetryAfter > 0 {
				r.RetryAfter += time.Microsecond
			}
		})},
		{2, "1 µs early", answer(func(r *result, _ int64) {
			if r.RetryAfter > 0 {
				r.RetryAfter -= time.Microsecond
			}
		})},
		{2, "never says never", answer(func(r *result, _ int64) { r.RetryAfter = max(0, r.RetryAfter) })},
		{2, "always after a refusal", answer(func(r *result, _ int64) {
			if r.Limited {
				r.RetryAfter = algorithms.Never
			}
		})},
		{3, "one more remains", answer(func(r *result, _ int64) { r.Remaining = min(r.Limit, r.Remaining+1) })},
		{3, "one less remains", answer(func(r *result, _ int64) { r.Remaining = max(0, r.Remaining-1) })},
		{3, "a look is never limited", answer(func(r *result, cost int64) { r.Limited = r.Limited && cost != 0 })},
		{4, "nothing comes back", given(func(s state, _ int64, _ []int64, cost, age int64) (state, int64, int64) {
			return s, max(0, cost), age
		})},
		{4, "age is ignored", given(func(s state, _ int64, _ []int64, cost, age int64) (state, int64, int64) { return s, cost, 0 })},
		{4, "one too much comes back", given(func(s state, _ int64, _ []int64, cost, age int64) (state, int64, int64) {
			if cost < 0 && cost > math.MinInt64 {
				cost--
			}
			return s, cost, age
		})},
		{5, "fresh too soon", answer(func(r *result, _ int64) {
			if r.ResetAfter > 0 {
				r.ResetAfter -= time.Microsecond
			}
		})},
		{5, "never quite fresh", answer(func(r *result, _ int64) { r.ResetAfter += time.Microsecond })},
		{6, "too fast by a millionth", compiled(func(l *algorithms.Limit) { l.Count, l.Period = l.Count*1000_001, l.Period*1000_000 })},
		{6, "too slow by a millionth", compiled(func(l *algorithms.Limit) { l.Count, l.Period = l.Count*1000_000, l.Period*1000_001 })},
		{7, "a step back is a fresh key", given(func(s state, now int64, _ []int64, cost, age int64) (state, int64, int64) {
			if len(s) > 0 && s[1] > now {
				s = nil
			}
			return s, cost, age
		})},
		{7, "a step back drains like one ahead", given(func(s state, now int64, _ []int64, cost, age int64) (state, int64, int64) {
			if len(s) > 0 && s[1] > now {
				s[1] = 2*now - s[1]
			}
			return s, cost, age
		})},
		{7, "the gap is forgotten", given(func(s state, now int64, p []int64, cost, age int64) (state, int64, int64) {
			if len(s) > 0 && s[1] > now && s[1]-now <= p[0]*p[1]/p[2]*p[3] {
				s[1] = now
			}
			return s, cost, age
		})},
		{7, "stale state is kept", given(func(s state, now int64, p []int64, cost, age int64) (state, int64, int64) {
			if span := p[0] * p[1] / p[2] * p[3]; len(s) > 0 && s[1]-now > span {
				s[1] = now + span
			}
			return s, cost, age
		})},
		{8, "time is kept instead of units", given(func(s state, _ int64, p []int64, cost, age int64) (state, int64, int64) {
			if len(s) > 0 {
				s[2] = p[1]
			}
			return s, cost, age
		})},
		{9, "huge costs wrap", answer(func(r *result, cost int64) {
			if cost == math.MaxInt64 {
				r.Remaining -= cost
			}
		})},
		{9, "an age before the first charge", answer(func(r *result, cost int64) {
			if cost == math.MinInt64 {
				r.ResetAfter = -r.ResetAfter - 1
			}
		})},
		{9, "any limit will do", broken{params: func(l algorithms.Limit) ([]int64, error) {
			p, err := gcra.Params(l)
			if err != nil {
				return []int64{max(l.Count, 1), max(l.Period.Microseconds(), 1), max(l.Count, 1), 1}, nil
			}
			return p, nil
		}}},
		{9, "an untyped error", broken{params: func(l algorithms.Limit) ([]int64, error) {
			p, err := gcra.Params(l)
			if err != nil {
				err = fmt.Errorf("no: %v", err)
			}
			return p, err
		}}},
	}
	seen := map[law]bool{}
	for _, m := range mistakes {
		t.Run(fmt.Sprintf("%d/%s", m.law, m.name), func(t *testing.T) {
			s := Spec{Algorithm: m.algo, Seed: 42}
			r := record(func(r reporter) {
				for _, l := range s.limits() {
					checkLimit(r, s, l)
				}
				checkAnyLimit(r, s)
			})
			if !r.broke(fmt.Sprintf("law %d", int(m.law))) {
				t.Errorf("not seen; this was said:\n%s", r.summary())
			}
		})
		seen[m.law] = true
	}
	if len(seen) != len(laws) {
		t.Errorf("%d of %d laws were broken", len(seen), len(laws))
	}
}
