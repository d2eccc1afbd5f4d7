package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// altered is an algorithm with a mistake in what it is given, or in what it makes
// of that.
type altered struct {
	algorithms.Algorithm
	params func(p []int64)
	given  func(s state, now int64, p []int64, cost, age int64) (state, int64)
	made   func(next state, r *result, now int64, p []int64, cost int64) state
}

func (a altered) Params(l algorithms.Limit) ([]int64, error) {
	p, err := a.Algorithm.Params(l)
	if err == nil && a.params != nil {
		a.params(p)
	}
	return p, err
}

func (a altered) Decide(dst, s state, now int64, p []int64, cost, age int64) (state, result) {
	seen := slices.Clone(s)
	if a.given != nil {
		seen, age = a.given(seen, now, p, cost, age)
	}
	next, r := a.Algorithm.Decide(nil, seen, now, p, cost, age)
	if r.Limited || cost == 0 {
		next = slices.Clone(s)
	}
	if a.made != nil {
		next = a.made(next, &r, now, p, cost)
	}
	return append(dst, next...), r
}

// What windows, counters and logs document.
func perPeriod(l algorithms.Limit) (int64, time.Duration) { return l.Count, l.Period }
func onePeriod(l algorithms.Limit) time.Duration          { return l.Period }

func twiceAtAnEdge(l algorithms.Limit, span time.Duration) int64 {
	return l.Count * (int64((span+l.Period-1)/l.Period) + 1)
}

func onceInAPeriod(l algorithms.Limit, span time.Duration) int64 {
	return l.Count * (int64(span/l.Period) + 1)
}

func oneLess(l algorithms.Limit) (int64, time.Duration) { return l.Count - 1, l.Period }

func windowSpec(a altered) Spec {
	if a.Algorithm == nil {
		a.Algorithm = algorithms.FixedWindow{}
	}
	return Spec{Algorithm: a, Bound: twiceAtAnEdge, Rate: perPeriod, Span: onePeriod}
}

func logSpec(a altered) Spec {
	a.Algorithm = algorithms.SlidingLog{}
	return Spec{Algorithm: a, Bound: onceInAPeriod, Rate: perPeriod, Span: onePeriod}
}

func counterSpec(a altered) Spec {
	a.Algorithm = algorithms.SlidingCounter{}
	return Spec{Algorithm: a, Rate: oneLess, Span: onePeriod}
}

// documented is a spec with another bound and rate.
func documented(s Spec, bound func(algorithms.Limit, time.Duration) int64, rate func(algorithms.Limit) (int64, time.Duration)) Spec {
	s.Bound, s.Rate = bound, rate
	return s
}

// ignoreAge gives back what was taken at any time.
func ignoreAge(s state, _ int64, _ []int64, _, _ int64) (state, int64) { return s, 0 }

// reopens takes a state ahead of the clock for none.
func reopens(s state, now int64, _ []int64, _, age int64) (state, int64) {
	if len(s) > 0 && s[0] > now {
		s = nil
	}
	return s, age
}

// comesAlong moves a state that is ahead of the clock, however far, to it.
func comesAlong(s state, now int64, _ []int64, _, age int64) (state, int64) {
	if len(s) > 0 && s[0] > now {
		s[0] = now
	}
	return s, age
}

// neverStale moves a state that is too far ahead of the clock into the span.
func neverStale(s state, now int64, p []int64, _, age int64) (state, int64) {
	for i := range s[:min(1, len(s))] {
		s[i] = min(s[i], now+p[1])
	}
	return s, age
}

// Each mistake is one that hand-written windows, counters and logs have, and Laws
// must see it.
func TestLawsSeeMistakesInWindows(t *testing.T) {
	aligned := algorithms.FixedWindow{Aligned: true}
	longer := func(by int64) func([]int64) { return func(p []int64) { p[1] += by } }
	for _, m := range []struct {
		law  law
		name string
		spec Spec
	}{
		{1, "a log remembers refusals", logSpec(altered{made: func(next state, r *result, now int64, _ []int64, _ int64) state {
			if r.Limited && len(next) > 0 {
				next = append(next, max(now, next[len(next)-1]))
			}
			return next
		}})},
		{1, "a look opens a window", windowSpec(altered{made: func(next state, _ *result, now int64, _ []int64, cost int64) state {
			if cost == 0 && len(next) == 0 {
				next = state{now, 0}
			}
			return next
		}})},
		{2, "a log waits for all of it", logSpec(altered{made: func(next state, r *result, _ int64, _ []int64, _ int64) state {
			if r.RetryAfter > 0 {
				r.RetryAfter = r.ResetAfter
			}
			return next
		}})},
		{2, "a counter waits for the next window", counterSpec(altered{made: func(next state, r *result, now int64, p []int64, _ int64) state {
			if r.RetryAfter > 0 {
				r.RetryAfter = time.Duration(p[1]-now%p[1]) * time.Microsecond
			}
			return next
		}})},
		{2, "an aligned window lasts a Period", windowSpec(altered{Algorithm: aligned, made: func(next state, r *result, _ int64, p []int64, _ int64) state {
			if r.RetryAfter > 0 {
				r.RetryAfter = time.Duration(p[1]) * time.Microsecond
			}
			return next
		}})},
		{3, "a log drops a unit that counts", logSpec(altered{made: func(next state, r *result, _ int64, _ []int64, cost int64) state {
			if cost > 0 && !r.Limited && len(next) > 1 {
				next = next[1:]
			}
			return next
		}})},
		{3, "a counter tells the current window only", counterSpec(altered{made: func(next state, r *result, _ int64, p []int64, _ int64) state {
			if len(next) == 3 {
				r.Remaining = max(0, p[0]-next[1])
			}
			return next
		}})},
		{4, "a window gives back what another took", windowSpec(altered{given: ignoreAge})},
		{4, "a counter gives back what no window counts", counterSpec(altered{given: ignoreAge})},
		{4, "a log gives back what has left", logSpec(altered{given: ignoreAge})},
		{4, "a log gives nothing back", logSpec(altered{given: func(s state, _ int64, p []int64, _, _ int64) (state, int64) { return s, p[1] }})},
		{5, "a window is fresh a Period after any charge", windowSpec(altered{made: func(next state, r *result, _ int64, p []int64, _ int64) state {
			if r.ResetAfter > 0 {
				r.ResetAfter = time.Duration(p[1]) * time.Microsecond
			}
			return next
		}})},
		{5, "a log is fresh when its oldest unit leaves", logSpec(altered{made: func(next state, r *result, now int64, p []int64, _ int64) state {
			for _, at := range next {
				if left := at + p[1] - now; left > 0 {
					r.ResetAfter = time.Duration(left) * time.Microsecond
					break
				}
			}
			return next
		}})},
		{5, "a counter is fresh at the end of its window", counterSpec(altered{made: func(next state, r *result, _ int64, p []int64, _ int64) state {
			if r.ResetAfter > time.Duration(p[1])*time.Microsecond {
				r.ResetAfter -= time.Duration(p[1]) * time.Microsecond
			}
			return next
		}})},
		{6, "a window with the bound of a bucket", documented(windowSpec(altered{}), nil, perPeriod)},
		{6, "an aligned window with the bound of a bucket", documented(windowSpec(altered{Algorithm: aligned}), nil, perPeriod)},
		{6, "a window that gives one less than it says", documented(windowSpec(altered{params: func(p []int64) { p[0]-- }}), twiceAtAnEdge, perPeriod)},
		{6, "a window that is 1 µs short", windowSpec(altered{params: longer(-1)})},
		{6, "a window that is 1 µs long", windowSpec(altered{params: longer(1)})},
		{6, "a counter that gives Count each Period", documented(counterSpec(altered{}), nil, perPeriod)},
		{6, "a counter with the bound of a log", documented(counterSpec(altered{}), onceInAPeriod, oneLess)},
		{6, "a log that forgets 1 µs early", logSpec(altered{params: longer(-1)})},
		{6, "a log that forgets 1 µs late", logSpec(altered{params: longer(1)})},
		{6, "a log without the edge of a Period", documented(logSpec(altered{}), func(l algorithms.Limit, span time.Duration) int64 {
			return l.Count * max(1, int64((span+l.Period-1)/l.Period))
		}, perPeriod)},
		{7, "a window reopens when the clock steps back", windowSpec(altered{given: reopens})},
		{7, "a counter begins anew when the clock steps back", counterSpec(altered{given: reopens})},
		{7, "a log forgets what is ahead of the clock", logSpec(altered{given: reopens})},
		{7, "a window comes along when the clock steps back", windowSpec(altered{given: comesAlong})},
		{7, "a stale window is kept", windowSpec(altered{given: neverStale})},
		{7, "a stale counter is kept", counterSpec(altered{given: neverStale})},
		{8, "a window keeps what remains", windowSpec(altered{
			given: func(s state, _ int64, p []int64, _, age int64) (state, int64) {
				if len(s) == 2 {
					s[1] = p[0] - s[1]
				}
				return s, age
			},
			made: func(next state, r *result, _ int64, p []int64, cost int64) state {
				if len(next) == 2 && cost != 0 && !r.Limited {
					next[1] = p[0] - next[1]
				}
				return next
			},
		})},
		{9, "a window is longer than a Result can tell", windowSpec(altered{params: func(p []int64) {
			if p[1] > 1<<50 {
				p[1] *= 8
			}
		}})},
	} {
		t.Run(fmt.Sprintf("%d/%s", m.law, m.name), func(t *testing.T) {
			if said := brokenBy(m.spec, m.law == 9); !said.broke(fmt.Sprintf("law %d", int(m.law))) {
				t.Errorf("not seen; this was said:\n%s", said.summary())
			}
		})
	}
	for _, s := range []Spec{windowSpec(altered{}), windowSpec(altered{Algorithm: aligned}), counterSpec(altered{}), logSpec(altered{})} {
		if said := brokenBy(s, false); len(said.said) > 0 {
			t.Errorf("%s has no mistake; this was said:\n%s", s.Algorithm.Name(), said.summary())
		}
	}
}

// brokenBy is what is said of a spec under limits that are quick to check.
func brokenBy(s Spec, any bool) *recorder {
	s.Seed = 42
	s.Limits = []algorithms.Limit{algorithms.PerSecond(3), algorithms.PerMinute(30)}
	return record(func(r reporter) {
		for _, l := range s.Limits {
			checkLimit(r, s, l)
		}
		if any {
			checkAnyLimit(r, s)
		}
	})
}
