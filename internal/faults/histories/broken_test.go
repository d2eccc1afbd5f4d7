package histories

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// plain is a store that does as the contract says, under one lock, but for what is
// wrong with it.
type plain struct {
	clock func() time.Time
	wrong func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error // nil if nothing is

	calls atomic.Int64
	mu    sync.Mutex
	cells map[[2]string]cell
	old   map[[2]string]cell // as they were before the last change
}

func (s *plain) Validate(...*algorithms.Policy) error { return nil }

func (s *plain) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := store.Check(ctx, charges, results); err != nil {
		return err
	}
	if s.wrong != nil {
		return s.wrong(s, s.calls.Add(1), charges, results)
	}
	return s.take(charges, results)
}

func (s *plain) take(charges []store.Charge, results []algorithms.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeAt(s.clock(), charges, results)
}

func (s *plain) takeAt(now time.Time, charges []store.Charge, results []algorithms.Result) error {
	answers, next := decide(charges, s.find(charges), now.UnixMicro())
	copy(results, answers)
	s.keep(charges, next)
	return nil
}

func name(c store.Charge) [2]string { return [2]string{c.Policy.ID(), c.Key} }

func (s *plain) find(charges []store.Charge) (found []cell) {
	for _, c := range charges {
		found = append(found, s.cells[name(c)])
	}
	return found
}

func (s *plain) keep(charges []store.Charge, next []cell) {
	for i, c := range charges {
		s.old[name(c)], s.cells[name(c)] = s.cells[name(c)], next[i]
	}
}

func (s *plain) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

var errCut = errors.New("the connection was cut")

// once is how often what is wrong goes wrong: once in so many calls.
const once = 8

// faults are mistakes that stores are made with.
var faults = []struct {
	name string
	take func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error
}{
	{"charge by charge", func(s *plain, _ int64, charges []store.Charge, results []algorithms.Result) error {
		for i := range charges {
			_ = s.take(charges[i:i+1], results[i:i+1])
			runtime.Gosched()
		}
		return nil
	}},
	{"written cell by cell", func(s *plain, _ int64, charges []store.Charge, results []algorithms.Result) error {
		var next []cell
		s.locked(func() {
			var answers []algorithms.Result
			answers, next = decide(charges, s.find(charges), s.clock().UnixMicro())
			copy(results, answers)
		})
		for i := range charges {
			s.locked(func() { s.keep(charges[i:i+1], next[i:i+1]) })
			runtime.Gosched()
		}
		return nil
	}},
	{"checked, then written", func(s *plain, _ int64, charges []store.Charge, results []algorithms.Result) error {
		var found []cell
		var now time.Time
		s.locked(func() { found, now = s.find(charges), s.clock() })
		runtime.Gosched()
		answers, next := decide(charges, found, now.UnixMicro())
		copy(results, answers)
		s.locked(func() { s.keep(charges, next) })
		return nil
	}},
	{"time from before the lock", func(s *plain, _ int64, charges []store.Charge, results []algorithms.Result) error {
		now := s.clock()
		runtime.Gosched()
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.takeAt(now, charges, results)
	}},
	{"a lost update", func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.find(charges)
		err := s.takeAt(s.clock(), charges, results)
		if nth%once == 0 {
			s.keep(charges, before)
		}
		return err
	}},
	{"a charge made twice", func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error {
		if nth%once == 0 {
			_ = s.take(charges, results)
		}
		return s.take(charges, results)
	}},
	{"looks at an old copy", func(s *plain, _ int64, charges []store.Charge, results []algorithms.Result) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if slices.ContainsFunc(charges, func(c store.Charge) bool { return c.Cost != 0 || c.Mode == store.Forget }) {
			return s.takeAt(s.clock(), charges, results)
		}
		var found []cell
		for _, c := range charges {
			found = append(found, s.old[name(c)])
		}
		answers, _ := decide(charges, found, s.clock().UnixMicro())
		copy(results, answers)
		return nil
	}},
	{"one more remaining", func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error {
		err := s.take(charges, results)
		if nth%once == 0 {
			results[0].Remaining++
		}
		return err
	}},
	{"a reset 1 µs late", func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error {
		err := s.take(charges, results)
		if nth%once == 0 {
			results[0].ResetAfter += time.Microsecond
		}
		return err
	}},
	{"a key that goes too early", func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error {
		if nth%once == 0 {
			s.locked(func() { s.keep(charges[:1], []cell{{}}) })
		}
		return s.take(charges, results)
	}},
	{"nothing is forgotten", func(s *plain, _ int64, charges []store.Charge, results []algorithms.Result) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		before := s.find(charges)
		err := s.takeAt(s.clock(), charges, results)
		for i, c := range charges {
			if c.Mode == store.Forget {
				s.keep(charges[i:i+1], before[i:i+1])
			}
		}
		return err
	}},
	{"sent again after a cut", func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error {
		err := s.take(charges, results)
		if nth%once == 0 {
			_ = s.take(charges, results)
			return errCut
		}
		return err
	}},
	{"half of a group before a cut", func(s *plain, nth int64, charges []store.Charge, results []algorithms.Result) error {
		if nth%once == 0 {
			_ = s.take(charges[:1], results[:1])
			return errCut
		}
		return s.take(charges, results)
	}},
}

func isCut(err error) bool { return errors.Is(err, errCut) }

func newPlain(t *testing.T, s subject, wrong func(*plain, int64, []store.Charge, []algorithms.Result) error) *bench {
	clock := storetest.NewClock()
	return &bench{
		subject: s,
		store:   &plain{clock: yielding(clock), wrong: wrong, cells: map[[2]string]cell{}, old: map[[2]string]cell{}},
		clock:   clock,
		jump:    func(set func()) { set() },
		fails:   isCut,
		groups:  true,
		seed:    seed(t),
	}
}

// A checker that finds nothing wrong proves nothing: each of these faults must be
// found, under each algorithm, within a few histories.
func TestBrokenStoresAreFound(t *testing.T) {
	const most = 200
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			for _, s := range subjects(t) {
				t.Run(s.name, func(t *testing.T) {
					b := newPlain(t, s, f.take)
					for n := range most {
						if !b.linearizable(t, b.history(t, n)) {
							t.Logf("found in history %d", n)
							return
						}
					}
					t.Errorf("WEIR_SEED=%d: not found in %d histories", b.seed, most)
				})
			}
		})
	}
}

// Without a fault, the same store passes.
func TestPlainStore(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			b := newPlain(t, s, nil)
			b.fails = nil
			b.all(t, count(20, 5))
		})
	}
}
