package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store/redisstore"
)

// The server's clock is set back and forth: what passes is what a clock that only
// goes ahead would let pass in the time that the server has seen, and what a step
// ahead skips.
func TestServerClockSteps(t *testing.T) {
	s := newReal(t)
	start := s.clock.Now()
	const limit = 10
	for _, a := range casetest.Algorithms() {
		name := casetest.Form(a)
		s.clock.Set(start)
		s.do("FLUSHALL")
		p := s.policy(a, algorithms.Limit{Count: limit, Period: 10 * time.Second})
		span := 10 * time.Second
		if _, ok := a.(casetest.AnyBan); ok {
			span = 26 * time.Second // a ban lasts for 15 s and a microsecond more than its strikes
		}
		passed := func() (n int) {
			for range 2 * limit {
				if !mustTake(t, s.store, p, "k", 1).Limited {
					n++
				}
			}
			return n
		}
		want := func(what string, got, most int) {
			t.Helper()
			if got > most {
				t.Errorf("%s, %s: %d passed; want at most %d", name, what, got, most)
			}
		}
		want("at first", passed(), limit)
		// Less than a span back, to and fro: nothing is credited, and what has to be
		// waited for is just that much longer.
		before := mustTake(t, s.store, p, "k", 1)
		for _, back := range []time.Duration{time.Microsecond, time.Second, 9 * time.Second, 3 * time.Second} {
			s.clock.Set(start.Add(-back))
			want("less than a span back", passed(), 0)
			r := mustTake(t, s.store, p, "k", 1)
			life := s.life(keyOf(p)) - r.ResetAfter // both ends are rounded to whole milliseconds
			if r.RetryAfter != before.RetryAfter+back || r.ResetAfter != before.ResetAfter+back || life < 0 || life > 2*time.Millisecond {
				t.Errorf("%s: %v back: %+v, and the key lives for %v longer; before %+v", name, back, r, life, before)
			}
			s.clock.Set(start)
			want("and forth", passed(), 0)
		}
		// More than a span back: the state is dropped, once.
		s.clock.Set(start.Add(-3 * span))
		want("more than a span back", passed(), limit)
		want("again", passed(), 0)
		// And forth again: it drains what it skips.
		s.clock.Set(start.Add(3 * span))
		if n := passed(); n != limit {
			t.Errorf("%s: %d passed after a step ahead", name, n)
		}
		want("after that", passed(), 0)
	}
}

// Two processes decide by clocks of their own, and one is ahead. By less than a
// limit's span: the two let through what one would in the time and the skew. By
// much more: there is no limit.
func TestSkewedProcesses(t *testing.T) {
	const limit, period = 10, 10 * time.Second
	s := newReal(t)
	start := s.clock.Now()
	for _, a := range casetest.Algorithms() {
		if a.Name() == "ban" {
			continue // its charges are refusals
		}
		name := casetest.Form(a)
		passed := func(skew time.Duration) (passed [2]int) {
			s.clock.Set(start)
			s.do("FLUSHALL")
			return s.skewed(s.policy(a, algorithms.Limit{Count: limit, Period: period}), skew)
		}
		agreed := passed(0)
		if agreed[0] < 4*limit || agreed[1] != 0 {
			t.Fatalf("%s: without a skew %d and %d passed", name, agreed[0], agreed[1])
		}
		for _, skew := range []time.Duration{time.Second, 5 * time.Second, period - time.Microsecond} {
			// What the algorithm lets through in the time from the first turn by one
			// clock to the last turn by the other.
			span := (turns-1)*period/4 + skew
			most := limit * (int((span+period-1)/period) + 1)
			if name == "gcra" || name == "leaky-bucket" || name == "token-bucket" {
				most = limit + int(span/(period/limit))
			}
			if got := passed(skew); got[0]+got[1] > most || got[0]+got[1] < agreed[0] {
				t.Errorf("%s, %v ahead: %d and %d passed; want %d to %d", name, skew, got[0], got[1], agreed[0], most)
			}
		}
		if got := passed(3 * period); got[0] != turns*limit || got[1] != turns*limit {
			t.Errorf("%s, three spans ahead: %d and %d passed; each finds what the other wrote to be stale", name, got[0], got[1])
		}
	}
}

// turns are four a period, of each of two processes.
const turns = 20

// skewed has two stores, of which the second is ahead, charge a key by turns until
// they are refused.
func (s *server) skewed(p *algorithms.Policy, skew time.Duration) (passed [2]int) {
	s.Helper()
	var stores [2]*redisstore.Store
	for i := range stores {
		ahead := time.Duration(i) * skew
		stores[i] = newStore(s.T, s.client.Options().Addr, redisstore.Config{Clock: func() time.Time { return s.clock.Now().Add(ahead) }})
	}
	for range turns {
		for i, one := range stores {
			for !mustTake(s.T, one, p, "k", 1).Limited {
				passed[i]++
			}
		}
		s.clock.Advance(p.Limit().Period / 4)
	}
	return passed
}
