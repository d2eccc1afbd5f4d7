package redisstore_test

import (
	"fmt"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store/redisstore"
)

// policy is one that counts by a.
func (s *server) policy(a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	s.Helper()
	return s.named("p", a, l)
}

func (s *server) named(name string, a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	s.Helper()
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		s.Fatal(err)
	}
	return p
}

// keyOf is where the state of key k under p is.
func keyOf(p *algorithms.Policy) string { return redisstore.DefaultPrefix + "{k}:" + p.ID() }

// What is kept lives for as long as its window, to the millisecond.
func windowEndsOnTime(s *server) {
	start := s.clock.Now()
	for _, a := range []algorithms.Algorithm{algorithms.FixedWindow{}, algorithms.FixedWindow{Aligned: true}} {
		s.clock.Set(start)
		s.do("FLUSHALL")
		p := s.policy(a, algorithms.PerMinute(5))
		mustTake(s.T, s.store, p, "k", 1)
		s.clock.Advance(58_700 * time.Millisecond)
		for range 4 {
			mustTake(s.T, s.store, p, "k", 1)
			if life := s.life(keyOf(p)); life != 1300*time.Millisecond {
				s.Errorf("%s lives for %v at 58.7 s of 60", casetest.Form(a), life)
			}
		}
		s.clock.Advance(1400 * time.Millisecond)
		for _, left := range []int64{4, 3} {
			if r := mustTake(s.T, s.store, p, "k", 1); r.Limited || r.Remaining != left {
				s.Errorf("%s: %+v, want %d left", casetest.Form(a), r, left)
			}
			s.clock.Advance(100 * time.Millisecond)
		}
	}
}

// No refused cost, however large, pins a key.
func refusedCostPinsNothing(s *server) {
	for _, a := range []algorithms.Algorithm{algorithms.GCRA{}, algorithms.TokenBucket{}, algorithms.LeakyBucket{}} {
		p := s.policy(a, algorithms.Limit{Count: 1, Period: 10 * time.Second, Burst: 10})
		for _, cost := range []int64{8, 5, 1_000_000, 2} {
			mustTake(s.T, s.store, p, "k", cost)
			if life := s.life(keyOf(p)); life <= 0 || life > 110*time.Second {
				s.Errorf("%s: after a cost of %d the key lives for %v", casetest.Form(a), cost, life)
			}
		}
	}
}

// Ten units of one moment are ten members, of which five are let in.
func membersAreUnits(s *server) {
	p := s.policy(algorithms.SlidingLog{}, algorithms.PerSecond(5))
	for i := range 10 {
		if r := mustTake(s.T, s.store, p, "k", 1); r.Limited != (i >= 5) {
			s.Errorf("call %d: %+v", i+1, r)
		}
	}
	if n := s.do("ZCARD", keyOf(p)); n != int64(5) {
		s.Errorf("%v members", n)
	}
}

// Refused calls leave nothing: not a member, not a byte.
func refusalsAreNotKept(s *server) {
	p := s.policy(algorithms.SlidingLog{}, algorithms.PerHour(10))
	kept := func() string { return fmt.Sprint(s.do("ZRANGE", keyOf(p), 0, -1, "WITHSCORES")) }
	for range 10 {
		mustTake(s.T, s.store, p, "k", 1)
	}
	before := kept()
	for range 2000 {
		mustTake(s.T, s.store, p, "k", 1)
	}
	if n := s.do("ZCARD", keyOf(p)); n != int64(10) || kept() != before {
		s.Errorf("%v members: %v, before %v", n, kept(), before)
	}
}

// A look at a key never seen makes none, under any algorithm.
func looksMakeNoKey(s *server) {
	for _, a := range casetest.Algorithms() {
		p := s.policy(a, algorithms.PerMinute(3))
		for range 100 {
			if r := mustTake(s.T, s.store, p, "k", 0); r.Remaining != 3 {
				s.Errorf("%s: %+v", casetest.Form(a), r)
			}
		}
	}
	if n := s.do("DBSIZE"); n != int64(0) {
		s.Errorf("%v keys", n)
	}
}
