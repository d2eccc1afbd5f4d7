package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// The field reports that speak of waiting, in Redis.
func TestWaitCases(t *testing.T) {
	for _, c := range []struct {
		id  string
		run func(*server)
	}{
		{"WR-01", deadlineBeforeTheSlot},
		{"WR-02", slotOfWhoWaited},
	} {
		t.Run(c.id, func(t *testing.T) {
			t.Run("miniredis", func(t *testing.T) {
				clock := storetest.NewClock()
				c.run(newServer(t, clock, redistest.Mini(t, clock).Addr()))
			})
			t.Run("redis", func(t *testing.T) {
				t.Parallel()
				clock := storetest.NewClock()
				c.run(newServer(t, clock, redistest.StartAt(t, clock).Addr))
			})
		})
	}
}

func deadlineBeforeTheSlot(s *server) {
	p := gcra(s, "p", algorithms.Limit{Count: 1, Period: 10 * time.Second})
	mustTake(s, s.store, p, "other", 1) // the connection is up
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	if err := store.Wait(ctx, s.store, p, "k", 1); err != nil {
		s.Errorf("the first: %v", err)
	}
	state, life := s.content("weir:{k}:p:gcra"), s.life("weir:{k}:p:gcra")
	// Had it slept, ctx would be done. How many milliseconds it takes on a busy
	// machine is not for a test to say; in memory it takes none.
	if err := store.Wait(ctx, s.store, p, "k", 1); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		s.Errorf("the second: %v, and ctx says %v", err, ctx.Err())
	}
	cancel()
	if err := store.Wait(ctx, s.store, p, "k", 1); !errors.Is(err, context.Canceled) {
		s.Errorf("with a ctx that is done: %v", err)
	}
	if got, left := s.content("weir:{k}:p:gcra"), s.life("weir:{k}:p:gcra"); got != state || left != life {
		s.Errorf("before %v for %v, after %v for %v", state, life, got, left)
	}
	s.clock.Advance(10 * time.Second)
	if r := mustTake(s, s.store, p, "k", 1); r.Limited {
		s.Errorf("10 s later: %+v; something was taken", r)
	}
}

// patient is a store whose time goes on by itself where somebody has to wait: as
// far as that one was told.
type patient struct {
	store.Store
	clock *storetest.Clock
}

func (p patient) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	err := p.Store.Take(ctx, charges, results)
	if err == nil && results[0].Limited {
		p.clock.Advance(results[0].RetryAfter)
	}
	return err
}

// There are no reservations here: no level goes below zero, and who waits holds
// nothing until the charge is made. That is what keeps the report's promise. The
// second two units are waited for and charged at 20, when they are there, and the
// key lives until the last of them has drained, at 40, as it would with a
// reservation at 0.
//
// The report's seconds are milliseconds where Wait sleeps in real time; at full
// length its attempts are made by hand.
func slotOfWhoWaited(s *server) {
	for unit, wait := range map[time.Duration]func(store.Store, *algorithms.Policy) error{
		time.Millisecond: func(shared store.Store, p *algorithms.Policy) error {
			return store.Wait(s.Context(), shared, p, "k", 2)
		},
		time.Second: func(shared store.Store, p *algorithms.Policy) error {
			_, err := store.Take(s.Context(), shared, p, "k", 2)
			if r := mustTake(s, shared, p, "k", 2); r.Limited {
				s.Errorf("after the wait: %+v", r)
			}
			return err
		},
	} {
		p, start := gcra(s, "per-"+unit.String(), algorithms.Limit{Count: 1, Period: 10 * unit, Burst: 2}), s.clock.Now()
		mustTake(s, s.store, p, "k", 2)
		if err := wait(patient{s.store, s.clock}, p); err != nil {
			s.Errorf("by %v: %v", unit, err)
		}
		if at := s.clock.Now().Sub(start); at != 20*unit {
			s.Errorf("by %v: two more are let in at %v", unit, at)
		}
		if left := s.life("weir:{k}:" + p.ID()); left != 20*unit {
			s.Errorf("by %v: at 20 the key lives on for %v, want until 40", unit, left)
		}
		s.clock.Set(start.Add(21 * unit))
		if r := mustTake(s, s.store, p, "k", 1); !r.Limited || r.RetryAfter != 9*unit {
			s.Errorf("by %v: at 21: %+v; the units due at 20 are sold twice", unit, r)
		}
		s.clock.Set(start.Add(31 * unit))
		if r := mustTake(s, s.store, p, "k", 1); r.Limited {
			s.Errorf("by %v: at 31: %+v", unit, r)
		}
	}
}
