package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// switched is a store that can be made to fail, or to hang until its context ends.
type switched struct {
	store.Store
	err   error
	hangs bool
	calls int
}

func (s *switched) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.calls++
	for i := range results {
		results[i].Remaining = 99 // after an error they mean nothing
	}
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.err != nil {
		return s.err
	}
	return s.Store.Take(ctx, charges, results)
}

func newSwitched() *switched { return &switched{Store: memstore.New(memstore.Config{})} }

// told is an observer that writes down errors.
type told struct{ errs []error }

func (t *told) add(_ context.Context, err error) { t.errs = append(t.errs, err) }

func perHour(t *testing.T, name string, n int64) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, algorithms.PerHour(n))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Where nothing fails, all of these are the store that they are around.
func TestDecoratorsRun(t *testing.T) {
	for name, around := range map[string]func(store.Store) store.Store{
		"Timeout":  func(s store.Store) store.Store { return store.Timeout(s, time.Hour) },
		"FailOpen": func(s store.Store) store.Store { return store.FailOpen(s, nil) },
		"Fallback": func(s store.Store) store.Store { return store.Fallback(s, memstore.New(memstore.Config{}), nil) },
		"Divide":   func(s store.Store) store.Store { return store.Divide(s, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(_ *testing.T, clock *storetest.Clock) store.Store {
				return around(memstore.New(memstore.Config{Clock: clock.Now}))
			}, storetest.Options{Steps: 2000})
		})
	}
}

func TestIsFailure(t *testing.T) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{context.Background(), nil, false},
		{context.Background(), errAway, true},
		{context.Background(), context.DeadlineExceeded, true}, // the store's own
		{context.Background(), context.Canceled, true},
		{done, errAway, false},
		{done, context.Canceled, false},
		{late{context.Background()}, os.ErrDeadlineExceeded, false},
		{context.Background(), store.ErrDuplicate, false},
		{context.Background(), fmt.Errorf("wrapped: %w", store.ErrDuplicate), false},
		{context.Background(), fmt.Errorf("slots: %w", errors.ErrUnsupported), false},
		{context.Background(), errors.Join(&algorithms.FieldError{Field: "charges[0].Key"}), false},
		{context.Background(), memstore.ErrFull, true},
	} {
		if got := store.IsFailure(tt.ctx, tt.err); got != tt.want {
			t.Errorf("%v, %v: %t", tt.ctx.Err(), tt.err, got)
		}
	}
}

// late is a context whose deadline has passed, before its timer has found out.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now(), true }

// A connection has the deadline of a context, and can be the first to tell.
func TestTimeoutTellsFromItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := store.Timeout(atDeadline{}, 50*time.Millisecond), perHour(t, "p", 1)
		if _, err := store.Take(context.Background(), s, p, "k", 1); !errors.Is(err, store.ErrTimeout) {
			t.Errorf("%v, want ErrTimeout", err)
		}
		ctx := late{context.Background()}
		if _, err := store.Take(ctx, s, p, "k", 1); errors.Is(err, store.ErrTimeout) || store.IsFailure(ctx, err) {
			t.Errorf("%v, want the caller's end", err)
		}
	})
}

// atDeadline fails at the deadline of its context, and does not wait for its end.
type atDeadline struct{ store.Store }

func (atDeadline) Take(ctx context.Context, _ []store.Charge, _ []algorithms.Result) error {
	deadline, _ := ctx.Deadline()
	time.Sleep(time.Until(deadline) - 1)
	for time.Now().Before(deadline) {
		time.Sleep(time.Nanosecond)
	}
	return os.ErrDeadlineExceeded
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newSwitched()
		inner.hangs = true
		s, p := store.Timeout(inner, 50*time.Millisecond), perHour(t, "p", 1)
		start := time.Now()
		_, err := store.Take(context.Background(), s, p, "k", 1)
		if took := time.Since(start); !errors.Is(err, store.ErrTimeout) || !store.IsFailure(context.Background(), err) || took != 50*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		// The caller's own end is that, also if it is a deadline.
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		start = time.Now()
		_, err = store.Take(ctx, s, p, "k", 1)
		if took := time.Since(start); errors.Is(err, store.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || store.IsFailure(ctx, err) || took != 20*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		inner.hangs, inner.err = false, errAway
		if _, err = store.Take(context.Background(), s, p, "k", 1); err != errAway {
			t.Errorf("%v, want the store's own error", err)
		}
		inner.err = nil
		if r, err := store.Take(context.Background(), s, p, "k", 1); err != nil || r.Limited {
			t.Errorf("%v, %v", r, err)
		}
	})
}

func TestFailOpen(t *testing.T) {
	inner, log := newSwitched(), &told{}
	s, p := store.FailOpen(inner, log.add), perHour(t, "p", 1)
	for i, limited := range []bool{false, true} {
		if r, err := store.Take(context.Background(), s, p, "k", 1); err != nil || r.Limited != limited || r.Limit != 1 {
			t.Errorf("%d: %v, %v", i, r, err)
		}
	}
	inner.err = errAway
	for range 3 {
		if r, err := store.Take(context.Background(), s, p, "k", 1); err != nil || r != (algorithms.Result{}) {
			t.Errorf("away: %v, %v", r, err)
		}
	}
	if len(log.errs) != 3 || log.errs[0] != errAway {
		t.Errorf("told %v", log.errs)
	}
	// What is the caller's is no failure.
	inner.hangs = true
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := store.Take(ctx, s, p, "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the caller's end", err)
	}
	inner.hangs, inner.err = false, nil
	if _, err := store.Take(context.Background(), s, p, "", 1); err == nil {
		t.Error("a charge without a key passes")
	}
	if r, err := store.Take(context.Background(), s, p, "k", 1); err != nil || !r.Limited || len(log.errs) != 3 {
		t.Errorf("back: %v, %v; told %v", r, err, log.errs)
	}
	inner.err = errAway
	if _, err := store.Take(context.Background(), store.FailOpen(inner, nil), p, "k", 1); err != nil {
		t.Errorf("without an observer: %v", err)
	}
}

func TestFallback(t *testing.T) {
	primary, backup, log := newSwitched(), newSwitched(), &told{}
	s, p := store.Fallback(primary, backup, log.add), perHour(t, "p", 2)
	want := func(what string, limited bool, remaining int64) {
		t.Helper()
		if r, err := store.Take(context.Background(), s, p, "k", 1); err != nil || r.Limited != limited || r.Remaining != remaining {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	want("primary", false, 1)
	want("primary", false, 0)
	primary.err = errAway
	want("backup", false, 1)
	want("backup", false, 0)
	want("backup", true, 0)
	if len(log.errs) != 3 || primary.calls != 5 || backup.calls != 3 {
		t.Errorf("told %v; %d and %d calls", log.errs, primary.calls, backup.calls)
	}
	// What is older than the outage is not given back by backup.
	results := make([]algorithms.Result, 1)
	err := s.Take(context.Background(), []store.Charge{{Policy: p, Key: "k", Cost: -1, Age: time.Hour}}, results)
	if err != errAway || backup.calls != 3 {
		t.Errorf("%v; %d calls of backup", err, backup.calls)
	}
	errToo := errors.New("away too")
	backup.err = errToo
	if _, err := store.Take(context.Background(), s, p, "k", 1); !errors.Is(err, errAway) || !errors.Is(err, errToo) {
		t.Errorf("both away: %v", err)
	}
	backup.err = nil
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before := backup.calls
	if _, err := store.Take(ctx, s, p, "k", 1); err == nil || backup.calls != before {
		t.Errorf("the caller is gone: %v; backup asked: %t", err, backup.calls != before)
	}
	primary.err = nil
	want("primary again", true, 0)
}

func TestDecoratorsAroundNothing(t *testing.T) {
	mem := memstore.New(memstore.Config{})
	var none *memstore.Store
	p := perHour(t, "p", 1)
	for field, s := range map[string]store.Store{
		"store.Timeout.s":         store.Timeout(nil, time.Second),
		"store.Timeout.d":         store.Timeout(mem, 0),
		"store.FailOpen.s":        store.FailOpen(none, nil),
		"store.Fallback.primary":  store.Fallback(nil, mem, nil),
		"store.Fallback.backup":   store.Fallback(mem, none, nil),
		"store.Divide.s":          store.Divide(nil, 2),
		"store.Divide.n":          store.Divide(mem, 0),
		"store.DenyCache.s":       store.DenyCache(none, time.Second, 1),
		"store.DenyCache.maxAge":  store.DenyCache(mem, 0, 1),
		"store.DenyCache.maxKeys": store.DenyCache(mem, time.Second, 0),
	} {
		var a, b *algorithms.FieldError
		_, err := store.Take(context.Background(), s, p, "k", 1)
		if !errors.As(s.Validate(p), &a) || a.Field != field || !errors.As(err, &b) || b.Field != field {
			t.Errorf("%s: %v; Take: %v", field, s.Validate(p), err)
		}
		if err := s.Validate(nil, p); err == nil {
			t.Errorf("%s: a nil policy", field)
		}
	}
	picky := &picky{}
	for _, s := range []store.Store{store.Timeout(picky, 1), store.FailOpen(picky, nil), store.Fallback(picky, mem, nil), store.Fallback(mem, picky, nil), store.Divide(picky, 2), store.DenyCache(picky, 1, 1)} {
		picky.asked = nil
		_ = s.Validate(p, perHour(t, "q", 3))
		if len(picky.asked) != 1 || picky.asked[0] != 2 {
			t.Errorf("%T asked its store %v", s, picky.asked)
		}
	}
}
