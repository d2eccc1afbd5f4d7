package algorithms_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

const µs = time.Microsecond

// What windows and steps refuse, and the last that they accept.
func TestEdgesOfParams(t *testing.T) {
	type (
		window = algorithms.FixedWindow
		ban    = algorithms.Ban
	)
	second := algorithms.PerSecond(5)
	longest := 1 << 51 * µs
	stepped, counter, log := algorithms.TokenBucket{Stepped: true}, algorithms.SlidingCounter{}, algorithms.SlidingLog{}
	own := func(b ban) limit { return limit{Count: b.Strikes, Period: b.Within} }
	most, long, never := ban{1 << 53, longest, longest}, ban{3, time.Hour, longest + µs}, ban{0, 0, -1}
	for _, c := range []struct {
		a      algorithms.Algorithm
		l      limit
		fields []string // that are mistaken
	}{
		{window{}, limit{Count: 1 << 53, Period: longest}, nil},
		{window{}, limit{Count: 1, Period: longest + µs}, []string{"Limit.Period"}},
		{window{}, second.WithBurst(1), []string{"Limit.Burst"}},
		{window{}, second.WithBurst(5), []string{"Limit.Burst"}},
		{window{}, limit{Burst: 9}, []string{"Limit.Count", "Limit.Period", "Limit.Burst"}},
		{window{Offset: time.Hour}, second, []string{"FixedWindow.Offset"}},
		{window{Offset: -time.Hour}, second, []string{"FixedWindow.Offset"}},
		{window{Aligned: true, Offset: -µs}, second, nil},
		{window{Aligned: true, Offset: 1}, second, []string{"FixedWindow.Offset"}},
		{window{Aligned: true, Offset: -1}, second, []string{"FixedWindow.Offset"}},
		{counter, limit{Count: 7, Period: 7 * µs}, nil},
		{counter, limit{Count: 8, Period: 7 * µs}, []string{"Limit.Count"}},
		{counter, limit{Count: 7, Period: 7 * µs, Burst: 7}, []string{"Limit.Burst"}},
		{counter, limit{Count: 1, Period: longest + µs}, []string{"Limit.Period"}},
		{log, limit{Count: algorithms.MaxLog, Period: µs}, nil},
		{log, limit{Count: algorithms.MaxLog + 1, Period: µs}, []string{"Limit.Count"}},
		{log, second.WithBurst(2), []string{"Limit.Burst"}},
		{stepped, second, nil},
		{stepped, second.WithBurst(5), nil},
		{stepped, second.WithBurst(4), []string{"Limit.Burst"}},
		{stepped, second.WithBurst(-1), []string{"Limit.Burst"}},
		{stepped, limit{Count: 2, Period: 1 << 51 * µs, Burst: 8}, nil}, // 2^53 µs to drain
		{stepped, limit{Count: 2, Period: 1 << 51 * µs, Burst: 9}, []string{"Limit"}},
		{most, own(most), nil},
		{long, own(long), []string{"Ban.For"}},
		{never, own(never), []string{"Ban.Strikes", "Ban.Within", "Ban.For"}},
		{ban{1<<53 + 1, 1, time.Hour + 1}, limit{Count: 1<<53 + 1, Period: 1}, []string{"Ban.Strikes", "Ban.Within", "Ban.For"}},
		{ban{3, time.Minute, time.Hour}, limit{Count: 3, Period: time.Minute, Burst: 1}, []string{"Limit"}},
		{ban{3, time.Minute, time.Hour}, limit{Count: 3, Period: time.Hour}, []string{"Limit"}},
	} {
		_, err := c.a.Params(c.l)
		var fields []string
		for _, mistake := range flatten(err) {
			fields = append(fields, mistake.Field)
		}
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%T%+v, %+v: %v; mistaken are %v", c.a, c.a, c.l, err, c.fields)
		}
	}
}

// ahead are algorithms with what each of them keeps of a charge, and the longest
// that it may be ahead of the clock.
func ahead(t *testing.T) (all []aheadOf) {
	l := limit{Count: 5, Period: time.Minute}
	for _, a := range []algorithms.Algorithm{
		algorithms.GCRA{}, algorithms.TokenBucket{Stepped: true}, algorithms.FixedWindow{}, algorithms.FixedWindow{Aligned: true},
		algorithms.SlidingCounter{}, algorithms.SlidingLog{},
	} {
		all = append(all, aheadOf{fmt.Sprintf("%T%+v", a, a), policy(t, a, l), 60_000_000})
	}
	for _, length := range []time.Duration{time.Second, time.Hour} {
		b, err := algorithms.Ban{Strikes: 5, Within: l.Period, For: length}.Policy("p")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, aheadOf{fmt.Sprintf("%+v", b.Algorithm()), b, max(l.Period, length).Microseconds()})
	}
	return all
}

type aheadOf struct {
	name string
	p    *algorithms.Policy
	span int64
}

// A state that is as far ahead of the clock as the limit's full span counts, and
// one that is a microsecond farther does not. Until the clock is there again
// nothing drains, and the way back to there is part of each wait.
func TestEdgesOfTheClock(t *testing.T) {
	const at = 6_000_000_000 // a whole number of minutes, where windows of any form begin
	for _, c := range ahead(t) {
		for _, used := range []int64{2, 5} {
			s, _ := c.p.Decide(nil, nil, at, used, 0)
			for _, gap := range []int64{0, 1, 30_000_000, c.span, c.span + 1} {
				for _, cost := range []int64{0, 1, 2, 4, 5, -1} {
					_, got := c.p.Decide(nil, s, at-gap, cost, 0)
					_, want := c.p.Decide(nil, s, at, cost, 0)
					wait := time.Duration(gap) * µs
					if gap > c.span {
						_, want = c.p.Decide(nil, nil, at-gap, cost, 0)
						wait = 0
					}
					// A log and a Ban that begins count from now.
					if _, log := c.p.Algorithm().(algorithms.SlidingLog); log && cost > 0 {
						continue
					}
					if want.RetryAfter > 0 {
						want.RetryAfter += wait
					}
					if want.ResetAfter > 0 {
						want.ResetAfter += wait
					}
					if got != want {
						t.Errorf("%s, %d used, %d µs back, cost %d: %+v, want %+v", c.name, used, gap, cost, got, want)
					}
				}
			}
		}
	}
}

// What is given back after the clock stepped back was taken in the window all the
// same. The age is measured by another clock, which did not.
func TestEdgesOfGiveBack(t *testing.T) {
	const at = 6_000_000_000
	for _, c := range ahead(t) {
		s, _ := c.p.Decide(nil, nil, at, 3, 0)
		for _, back := range []int64{0, 1, 20_000_000} {
			if _, r := c.p.Decide(nil, s, at-back, -2, 0); r.Remaining != 4 {
				t.Errorf("%s: 3 taken and 2 given back %d µs before: %+v", c.name, back, r)
			}
		}
	}
}

// A state that no algorithm of that name made is a key never seen, not a panic.
func TestEdgesOfStates(t *testing.T) {
	const now = 6_000_000_030
	for _, c := range ahead(t) {
		states := []algorithms.State{{}, {now}, {now, 1, 0, 0}, {now - 5, -1, -1}}
		switch c.p.Algorithm().(type) {
		case algorithms.SlidingLog:
			continue // keeps any number of any numbers
		case algorithms.FixedWindow:
			states = append(states, algorithms.State{now, 1, 0}, algorithms.State{now - 5, 0}, algorithms.State{now - 5, -1})
		case algorithms.SlidingCounter:
			states = append(states, algorithms.State{now, 1}, algorithms.State{now - 60_000_000, -1, 5})
		case algorithms.Ban:
			states = append(states, algorithms.State{now, 1}, algorithms.State{now - 5, 0, 9}, algorithms.State{now - 5, 3, -1})
		}
		for _, s := range states {
			_, want := c.p.Decide(nil, nil, now, 2, 0)
			if _, r := c.p.Decide(nil, s, now, 2, 0); r != want {
				t.Errorf("%s, state %v: %+v, want %+v", c.name, s, r, want)
			}
		}
	}
}

// What the last window is counted for does not grow where the clock steps back to
// before the current one; and under a lower limit no window
// used more than that.
func TestEdgesOfACounter(t *testing.T) {
	const minute = 60_000_000
	high, low := policy(t, algorithms.SlidingCounter{}, algorithms.PerMinute(100)), policy(t, algorithms.SlidingCounter{}, algorithms.PerMinute(40))
	s, _ := high.Decide(nil, nil, minute-1, 60, 0)
	s, _ = high.Decide(nil, s, minute, 10, 0)
	for _, gap := range []int64{0, 1, minute / 2, minute} {
		if _, r := high.Decide(nil, s, minute-gap, 0, 0); r.Remaining != 100-10-60 {
			t.Errorf("60 and 10 used, %d µs back %+v", gap, r)
		}
	}
	s, _ = high.Decide(nil, nil, 0, 100, 0)
	s, _ = high.Decide(nil, s, minute+minute/2, 10, 0)
	if _, r := low.Decide(nil, s, minute+minute/2, 0, 0); r.Remaining != 40-10-20 {
		t.Errorf("100 and 10 used, half a window on %+v under %v", r, low.Limit())
	}
}

// Of the units that have left, each charge clears away 64 more than it takes or
// gives back, and all where none counts any more.
func TestEdgesOfALog(t *testing.T) {
	const minute = 60_000_000
	p := policy(t, algorithms.SlidingLog{}, algorithms.PerMinute(200))
	half := make(algorithms.State, 150, 200) // 150 at 0, 50 half a minute later
	for range 50 {
		half = append(half, minute/2)
	}
	for _, c := range []struct {
		now, cost int64
		left      int // of the 150
		counts    int
	}{
		{minute, 1, 150 - 65, 51},
		{minute, 3, 150 - 67, 53},
		{minute, 100, 0, 150},
		{minute, -1, 150 - 65, 49},
		{minute, -10, 150 - 74, 40},
		{minute, -50, 0, 0},
		{minute + minute/2, 1, 0, 1},
		{minute + minute/2, -1, 0, 0},
	} {
		next, r := p.Decide(nil, half, c.now, c.cost, minute-1)
		old := 0
		for old < len(next) && next[old] == 0 {
			old++
		}
		if old != c.left || len(next)-old != c.counts || !slices.IsSorted(next) || r.Remaining != int64(200-c.counts) {
			t.Errorf("at %d, cost %d: %d of the first 150 units and %d others are kept, want %d and %d; %+v", c.now, c.cost, old, len(next)-old, c.left, c.counts, r)
		}
	}
}
