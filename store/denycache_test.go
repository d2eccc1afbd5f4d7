package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// denying is a DenyCache of maxAge around a counted store by the clock of the
// test's bubble.
func denying(maxAge time.Duration, maxKeys int) (store.Store, *switched) {
	inner := newSwitched()
	return store.DenyCache(inner, maxAge, maxKeys), inner
}

// charge is one in Enforce mode.
func charge(p *algorithms.Policy, key string, cost int64) store.Charge {
	return store.Charge{Policy: p, Key: key, Cost: cost}
}

func takeAll(t *testing.T, s store.Store, charges ...store.Charge) []algorithms.Result {
	t.Helper()
	results := make([]algorithms.Result, len(charges))
	if err := s.Take(context.Background(), charges, results); err != nil {
		t.Fatal(err)
	}
	return results
}

func TestDenyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner := denying(time.Hour, 100)
		p := perHour(t, "p", 60)
		// asks makes a charge that must, or must not, reach the store.
		asks := func(what string, reaches bool, c store.Charge) algorithms.Result {
			t.Helper()
			before := inner.calls
			r := takeAll(t, s, c)[0]
			if got := inner.calls > before; got != reaches {
				t.Errorf("%s: reaches the store: %t", what, got)
			}
			return r
		}
		asks("all of it", true, charge(p, "k", 60))
		first := asks("denied", true, charge(p, "k", 2))
		if !first.Limited || first.RetryAfter != 2*time.Minute || first.ResetAfter != time.Hour {
			t.Fatalf("%+v", first)
		}
		time.Sleep(30 * time.Second)
		again := asks("again", false, charge(p, "k", 2))
		if want := (algorithms.Result{Limited: true, Limit: 60, RetryAfter: 90 * time.Second, ResetAfter: time.Hour - 30*time.Second}); again != want {
			t.Errorf("%+v, want %+v", again, want)
		}
		asks("more", false, charge(p, "k", 3))
		asks("a look", true, charge(p, "k", 0))
		asks("another key", true, charge(p, "l", 2))
		asks("an equal policy", true, charge(perHour(t, "p", 60), "k", 2))
		time.Sleep(90*time.Second - time.Microsecond)
		asks("just before", false, charge(p, "k", 2))
		time.Sleep(time.Microsecond)
		if r := asks("in time", true, charge(p, "k", 2)); r.Limited {
			t.Errorf("%+v", r)
		}

		asks("all of it", true, charge(p, "m", 60))
		asks("denied", true, charge(p, "m", 5))
		asks("less", true, charge(p, "m", 2)) // which may fit, and here doesn't
		asks("less", false, charge(p, "m", 2))
		asks("as before", false, charge(p, "m", 5))

		asks("for ever", true, charge(p, "k", 61))
		time.Sleep(time.Minute)
		if r := asks("for ever", false, charge(p, "k", 61)); r.RetryAfter != algorithms.Never {
			t.Errorf("%+v", r)
		}
	})
}

func TestDenyCacheMaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner := denying(time.Second, 100)
		p := perHour(t, "p", 1)
		takeAll(t, s, charge(p, "k", 1))
		takeAll(t, s, charge(p, "k", 1))
		time.Sleep(time.Second - 1)
		if r := takeAll(t, s, charge(p, "k", 1))[0]; inner.calls != 2 || r.RetryAfter != time.Hour-time.Second+1 {
			t.Errorf("%d calls, %+v", inner.calls, r)
		}
		time.Sleep(time.Nanosecond)
		if takeAll(t, s, charge(p, "k", 1)); inner.calls != 3 {
			t.Errorf("%d calls", inner.calls)
		}
	})
}

// Time counts from before the store was asked: a slow answer is no longer wait.
func TestDenyCacheOfSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newSwitched()
		late := &slowStore{inner, 10 * time.Second}
		s := store.DenyCache(late, time.Hour, 100)
		p := perHour(t, "p", 60)
		takeAll(t, s, charge(p, "k", 60)) // answers after 10 s
		takeAll(t, s, charge(p, "k", 1))  // decided and answered after another 10 s
		time.Sleep(40*time.Second - 1)
		if takeAll(t, s, charge(p, "k", 1)); inner.calls != 2 {
			t.Errorf("%d calls", inner.calls)
		}
		time.Sleep(time.Nanosecond) // a minute after the first was decided
		if r := takeAll(t, s, charge(p, "k", 1)); inner.calls != 3 || r[0].Limited {
			t.Errorf("%d calls, %+v", inner.calls, r)
		}
	})
}

type slowStore struct {
	store.Store
	by time.Duration
}

func (s *slowStore) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	err := s.Store.Take(ctx, charges, results)
	time.Sleep(s.by)
	return err
}

func TestDenyCacheGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, inner := denying(time.Hour, 100)
		p, q := perHour(t, "p", 1), perHour(t, "q", 100)
		ban, err := algorithms.Ban{Strikes: 3, Within: time.Hour, For: time.Hour}.Policy("ban")
		if err != nil {
			t.Fatal(err)
		}
		strike := store.Charge{Policy: ban, Key: "k", Cost: 1, Mode: store.Strike}
		shadow := store.Charge{Policy: q, Key: "s", Cost: 200, Mode: store.Shadow}
		reaches := func(what string, want bool, charges ...store.Charge) []algorithms.Result {
			t.Helper()
			before := inner.calls
			r := takeAll(t, s, charges...)
			if got := inner.calls > before; got != want {
				t.Errorf("%s: reaches the store: %t", what, got)
			}
			return r
		}
		reaches("first", true, charge(p, "k", 1), charge(q, "k", 1))
		reaches("denied", true, charge(p, "k", 1), charge(q, "k", 1))
		r := reaches("again", false, charge(q, "k", 1), charge(p, "k", 1), shadow)
		if r[0] != (algorithms.Result{}) || !r[1].Limited || r[2] != (algorithms.Result{}) {
			t.Errorf("%+v", r)
		}
		reaches("the other alone", true, charge(q, "k", 1))
		reaches("with a look", true, charge(p, "k", 1), charge(q, "k", 0))
		reaches("a shadow's denial is none", true, shadow)
		reaches("a shadow's denial is none", true, shadow)

		// Refusals count until the ban refuses itself.
		for i := range 3 {
			reaches(fmt.Sprint("strike ", i), true, charge(p, "k", 1), strike)
		}
		reaches("the ban refuses", true, charge(q, "k", 1), strike)
		r = reaches("banned", false, charge(q, "k", 1), strike)
		if r[0] != (algorithms.Result{}) || !r[1].Limited || r[1].RetryAfter != time.Hour {
			t.Errorf("%+v", r)
		}
		reaches("banned and denied", false, charge(p, "k", 1), strike)

		// What is forgotten here is asked for again.
		reaches("forget", true, store.Charge{Policy: ban, Key: "k", Mode: store.Forget})
		if r := reaches("no ban", true, charge(q, "k", 1), strike); r[0].Limited || r[1].Limited {
			t.Errorf("%+v", r)
		}
		reaches("given back", true, charge(p, "k", -1))
		if r := reaches("fits", true, charge(p, "k", 1)); r[0].Limited {
			t.Errorf("%+v", r)
		}
	})
}

func TestDenyCacheErrors(t *testing.T) {
	s, inner := denying(time.Hour, 100)
	p := perHour(t, "p", 1)
	takeAll(t, s, charge(p, "k", 1))
	takeAll(t, s, charge(p, "k", 1)) // remembered
	done, cancel := context.WithCancel(context.Background())
	cancel()
	one, results := []store.Charge{charge(p, "k", 1)}, make([]algorithms.Result, 1)
	if err := s.Take(done, one, results); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller is gone: %v", err)
	}
	if err := s.Take(context.Background(), one, nil); err == nil {
		t.Error("no results")
	}
	if err := s.Take(context.Background(), []store.Charge{charge(p, "k", 1), charge(p, "", 1)}, make([]algorithms.Result, 2)); err == nil {
		t.Error("a charge without a key")
	}
	if err := s.Take(context.Background(), []store.Charge{charge(p, "k", 1), {Key: "k", Cost: 1}}, make([]algorithms.Result, 2)); err == nil {
		t.Error("a charge without a policy")
	}
	inner.err = errAway // a failure is no denial
	if err := s.Take(context.Background(), []store.Charge{charge(p, "new", 1)}, results); err != errAway {
		t.Errorf("%v", err)
	}
	if err := s.Take(context.Background(), one, results); err != nil || !results[0].Limited {
		t.Errorf("remembered: %v, %+v", err, results[0])
	}
	inner.err = nil
	if r := takeAll(t, s, charge(p, "new", 1)); r[0].Limited {
		t.Errorf("%+v", r)
	}
}

// Its room is bounded, and those who ask all the time stay in it as well as others.
func TestDenyCacheIsBounded(t *testing.T) {
	const room = 160
	s, inner := denying(time.Hour, room)
	p := perHour(t, "p", 1)
	for i := range 10_000 {
		key := fmt.Sprint(i)
		takeAll(t, s, charge(p, key, 1))
		takeAll(t, s, charge(p, key, 1))
	}
	if n := store.Denials(s); n > room || n < room/2 {
		t.Errorf("%d denials are kept, of %d", n, room)
	}
	before := inner.calls
	for i := range room / 4 {
		takeAll(t, s, charge(p, fmt.Sprint(9_999-i), 1))
	}
	if inner.calls-before == room/4 {
		t.Error("the latest denials are not among those kept")
	}
}

// Against the store alone, at random: nobody is let through whom the store would
// refuse, and nobody is refused for longer than maxAge whom it would let through.
func TestDenyCacheRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		s, inner := denying(5*time.Second, 64)
		p := perHour(t, "p", 3600) // one a second
		saved := 0
		for i := range 20_000 {
			key, cost := fmt.Sprint(rnd.IntN(10)), rnd.Int64N(3000)+1
			look := takeAll(t, inner, charge(p, key, 0))[0]
			before := inner.calls
			r := takeAll(t, s, charge(p, key, cost))[0]
			switch asked := inner.calls > before; {
			case r.Limited != (look.Remaining < cost):
				t.Fatalf("seed %d, step %d: %+v for %d, and the store had %+v", seed, i, r, cost, look)
			case !asked && (r.RetryAfter <= 0 || r.ResetAfter > look.ResetAfter || r.RetryAfter > time.Duration(cost-look.Remaining)*time.Second):
				t.Fatalf("seed %d, step %d: from memory %+v, and the store had %+v", seed, i, r, look)
			case !asked:
				saved++
			}
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		}
		if saved < 1000 {
			t.Errorf("seed %d: only %d answers from memory", seed, saved)
		}
	})
}

func TestDenyCacheConcurrent(t *testing.T) {
	s := store.DenyCache(memstore.New(memstore.Config{}), time.Hour, 32)
	p := perHour(t, "p", 5)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				c := charge(p, fmt.Sprint(i%50), 1)
				switch (i + g) % 7 {
				case 0:
					c.Cost = -1
				case 1:
					c.Cost, c.Mode = 0, store.Forget
				}
				takeAll(t, s, c)
			}
		})
	}
	all.Wait()
}

func TestDenyCacheAllocations(t *testing.T) {
	s, _ := denying(time.Hour, 100)
	p := perHour(t, "p", 1)
	one, results := []store.Charge{charge(p, "203.0.113.7", 1)}, make([]algorithms.Result, 1)
	for range 2 {
		if err := s.Take(context.Background(), one, results); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = s.Take(context.Background(), one, results) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDenyCache(b *testing.B) {
	s, inner := denying(time.Hour, 1000)
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerHour(1))
	if err != nil {
		b.Fatal(err)
	}
	one, results := []store.Charge{charge(p, "203.0.113.7", 1)}, make([]algorithms.Result, 1)
	for b.Loop() {
		if err := s.Take(context.Background(), one, results); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	if inner.calls != 2 {
		b.Errorf("%d calls of the store", inner.calls)
	}
}
