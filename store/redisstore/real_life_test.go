package redisstore_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// wholeMS is d in whole milliseconds, rounded up.
func wholeMS(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func everyKeyRunsOut(s *server) {
	var ps, qs []*algorithms.Policy // of each algorithm one
	for i, a := range casetest.Algorithms() {
		ps = append(ps, s.named("p"+strconv.Itoa(i), a, algorithms.PerMinute(10)))
		qs = append(qs, s.named("q"+strconv.Itoa(i), a, algorithms.PerHour(20)))
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 2000 / 16 {
				ctx, cancel := context.WithCancel(context.Background())
				fate := rand.IntN(10)
				switch fate {
				case 0:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(500))*time.Microsecond)
				case 1:
					go cancel()
				}
				key, cost := strconv.Itoa(rand.IntN(2000)), int64(rand.IntN(4))
				p, q := ps[rand.IntN(len(ps))], qs[rand.IntN(len(qs))]
				charges := []store.Charge{{Policy: p, Key: key, Cost: cost}, {Policy: q, Key: key, Cost: cost}}[:1+rand.IntN(2)]
				// What a cancelled call did is not known.
				err := s.store.Take(ctx, charges, make([]algorithms.Result, len(charges)))
				if err != nil && fate > 1 {
					s.Errorf("Take: %v", err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	keys := s.keys()
	if len(keys) < 500 {
		s.Fatalf("%d keys", len(keys))
	}
	seen := map[*algorithms.Policy]bool{}
	for _, name := range keys {
		var policy *algorithms.Policy
		for _, p := range slices.Concat(ps, qs) {
			if strings.HasSuffix(name, "}:"+p.ID()) {
				policy = p
			}
		}
		seen[policy] = true
		key, _, _ := strings.Cut(strings.TrimPrefix(name, "weir:{"), "}")
		left, full := s.life(name), longest(policy)
		if want := wholeMS(mustTake(s, s.store, policy, key, 0).ResetAfter); left <= 0 || left > full || left != want {
			s.Errorf("%s lives on for %v; want %v", name, left, want)
		}
	}
	if len(seen) != len(ps)+len(qs) {
		s.Errorf("keys of %d policies; want %d", len(seen), len(ps)+len(qs))
	}
}

// longest is how long a key may live: for as long as it takes to be as good as new.
func longest(p *algorithms.Policy) time.Duration {
	switch p.Algorithm().(type) {
	case algorithms.SlidingCounter, casetest.AnyBan: // this window and the next, or a ban
		return 2 * p.Limit().Period
	}
	return p.Limit().Period
}

func lifeInMilliseconds(s *server) {
	for _, a := range casetest.Algorithms() {
		p := s.policy(a, algorithms.PerMinute(5))
		s.do("FLUSHALL")
		r := mustTake(s, s.store, p, "k", 1)
		if left := s.life(keyOf(p)); left != wholeMS(r.ResetAfter) || left <= 0 || left > longest(p) {
			s.Errorf("%s: the key lives on for %v; its reset is in %v", casetest.Form(a), left, r.ResetAfter)
		}
	}
}

func lifeIsWhole(s *server) {
	for i, l := range []algorithms.Limit{
		{Count: 7, Period: 1500 * time.Millisecond}, algorithms.PerSecond(3),
		{Count: 1, Period: 333 * time.Millisecond}, {Count: 13, Period: 86_401 * time.Second},
		{Count: 1_000_000, Period: time.Second}, {Count: 3, Period: time.Microsecond},
	} {
		for j, a := range casetest.Algorithms() {
			if i >= 4 && j > 0 {
				break // not every algorithm takes these
			}
			p := s.named("p"+strconv.Itoa(100*i+j), a, l)
			for range 2 {
				mustTake(s, s.store, p, "k", 1)
				left, reset := s.life(keyOf(p)), mustTake(s, s.store, p, "k", 0).ResetAfter
				// The server's own time is cut to milliseconds, and a key lives for
				// all of its last one.
				if left < time.Millisecond || left+time.Millisecond < reset || left > wholeMS(reset) {
					s.Errorf("%s, %v: the key lives on for %v, its reset is in %v", casetest.Form(a), l, left, reset)
				}
				s.clock.Advance(17 * time.Microsecond)
				if reset < 17*time.Microsecond {
					break
				}
			}
		}
	}
}

func shortWindows(s *server) {
	start := s.clock.Now()
	for _, ms := range []time.Duration{1, 10, 200, 999} {
		for _, a := range casetest.Algorithms() {
			s.clock.Set(start)
			s.do("FLUSHALL")
			p := s.policy(a, algorithms.Limit{Count: 2, Period: ms * time.Millisecond})
			wantPasses(s, s.store, p, "k", true, true, false)
			after := time.Second
			if longest(p) > p.Limit().Period { // this window counts in the next, and a ban is longer
				after = 2 * time.Second
			}
			s.clock.Advance(after)
			if n := s.do("EXISTS", keyOf(p)); n != int64(0) {
				s.Errorf("%s, 2 per %d ms: the key is there %v later", casetest.Form(a), ms, after)
			}
		}
	}
}

func longWindows(s *server) {
	for _, seconds := range []time.Duration{1_000_000, 2_592_000, 31_536_000} {
		for _, a := range casetest.Algorithms() {
			s.do("FLUSHALL")
			window := seconds * time.Second
			p := s.policy(a, algorithms.Limit{Count: 2, Period: window})
			wantPasses(s, s.store, p, "k", true, true, false)
			left, want := s.life(keyOf(p)), window
			switch a := a.(type) {
			case casetest.AnyBan:
				want = window * 3 / 2
			case algorithms.SlidingCounter:
				want = 2*window - s.into(0, window)
			case algorithms.FixedWindow:
				if a.Aligned {
					want = window - s.into(a.Offset, window)
				}
			}
			if left > want+time.Millisecond || left < want-want/100 {
				s.Errorf("%s, 2 per %v: the key lives on for %v, want %v", casetest.Form(a), window, left, want)
			}
		}
	}
}

// into is how far the time is into a window of the calendar.
func (s *server) into(offset, window time.Duration) time.Duration {
	return time.Duration((s.clock.Now().UnixMicro()+offset.Microseconds())%window.Microseconds()) * time.Microsecond
}

// newReal is a server for one test.
func newReal(t *testing.T) *server {
	t.Helper()
	t.Parallel()
	clock := storetest.NewClock()
	return newServer(t, clock, redistest.StartAt(t, clock).Addr)
}

// A key that somebody has made last for ever gets its life time back from the
// next charge, were it refused, and from a look.
func TestLostLifeTimeIsHealed(t *testing.T) {
	s := newReal(t)
	p, q := gcra(t, "p", algorithms.PerMinute(3)), gcra(t, "q", algorithms.PerHour(100))
	const name = "weir:{k}:p:gcra"
	reset := mustTake(t, s.store, p, "k", 3).ResetAfter
	for what, charge := range map[string]func() (algorithms.Result, error){
		"a refused charge": func() (algorithms.Result, error) { return store.Take(t.Context(), s.store, p, "k", 1) },
		"a look":           func() (algorithms.Result, error) { return store.Take(t.Context(), s.store, p, "k", 0) },
		"a refused group": func() (algorithms.Result, error) {
			rs, err := takeGroup(s.store, "k", q, p)
			return rs[1], err
		},
	} {
		if s.do("PERSIST", name) != int64(1) || s.life(name) != -time.Millisecond {
			t.Fatalf("the key was not made to last: %v", s.life(name))
		}
		if r, err := charge(); err != nil || !r.Limited || s.life(name) != reset {
			t.Errorf("%s: %+v, %v; the key lives on for %v, want %v", what, r, err, s.life(name), reset)
		}
	}
}

// Under a limit that did not change, a refusal and a look write nothing, at
// whatever part of a millisecond.
func TestRefusalsWriteNothing(t *testing.T) {
	s := newReal(t)
	p, q := gcra(t, "p", algorithms.PerMinute(3)), gcra(t, "q", algorithms.PerHour(100))
	written := func() string {
		info := s.do("INFO", "persistence").(string)
		_, rest, _ := strings.Cut(info, "rdb_changes_since_last_save:")
		n, _, ok := strings.Cut(rest, "\r\n")
		if !ok {
			t.Fatal(info)
		}
		return n
	}
	s.clock.Advance(123 * time.Microsecond)
	if rs, err := takeGroup(s.store, "k", q, p); err != nil || rs[0].Limited || rs[1].Limited {
		t.Fatalf("%+v, %v", rs, err)
	}
	mustTake(t, s.store, p, "k", 2)
	before := written()
	for range 300 {
		s.clock.Advance(137 * time.Microsecond)
		alone := mustTake(t, s.store, p, "k", 1)
		rs, err := takeGroup(s.store, "k", q, p)
		if !alone.Limited || err != nil || !rs[1].Limited {
			t.Fatalf("%+v; %+v, %v", alone, rs, err)
		}
		mustTake(t, s.store, q, "k", 0)
	}
	if after := written(); after != before {
		t.Errorf("%s changes after 300 refusals, %s before", after, before)
	}
	if mustTake(t, s.store, q, "k", 1); written() == before {
		t.Error("a charge that passes is no change: this test sees nothing")
	}
}
