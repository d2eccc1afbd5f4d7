package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

var errAway = errors.New("away")

// switched is a store that can be made to fail, or to hang until its context ends.
type switched struct {
	store.Store
	err   error
	hangs bool
	calls int
}

func (s *switched) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.calls++
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.err != nil {
		return s.err
	}
	return s.Store.Take(ctx, charges, results)
}

func perHour(t testing.TB, n int64) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerHour(n))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRun(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, clock *storetest.Clock) store.Store {
		return breaker.New(memstore.New(memstore.Config{Clock: clock.Now}), breaker.Config{})
	}, storetest.Options{Steps: 2000})
}

func TestOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &switched{Store: memstore.New(memstore.Config{})}
		var changes []string
		s := breaker.New(inner, breaker.Config{
			Failures: 3, Cooldown: 2 * time.Second,
			Changed: func(opened bool, why error) { changes = append(changes, fmt.Sprint(opened, " ", why)) },
		})
		p := perHour(t, 100)
		// want makes one charge and looks whether the store was asked.
		want := func(what string, asked bool, err error) {
			t.Helper()
			before := inner.calls
			if _, got := store.Take(context.Background(), s, p, "k", 1); !errors.Is(got, err) {
				t.Errorf("%s: %v, want %v", what, got, err)
			}
			if got := inner.calls > before; got != asked {
				t.Errorf("%s: the store was asked: %t", what, got)
			}
		}
		want("at first", true, nil)
		inner.err = errAway
		want("failure 1", true, errAway)
		want("failure 2", true, errAway)
		inner.err = nil
		want("a success between", true, nil)
		inner.err = errAway
		for range 3 {
			want("three in a row", true, errAway)
		}
		want("open", false, breaker.ErrOpen)
		if _, err := store.Take(context.Background(), s, p, "k", 1); !store.IsFailure(context.Background(), err) {
			t.Errorf("%v is no failure", err)
		}
		time.Sleep(2*time.Second - 1)
		want("still open", false, breaker.ErrOpen)
		time.Sleep(2 * time.Nanosecond)
		want("one tries, in vain", true, errAway)
		want("open again", false, breaker.ErrOpen)
		inner.err = nil
		time.Sleep(2*time.Second + 1)
		want("one tries", true, nil)
		want("closed", true, nil)
		if got := fmt.Sprint(changes); got != "[true away false <nil>]" {
			t.Errorf("changes: %s", got)
		}
	})
}

// While one tries, others are not held up.
func TestOneTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &switched{Store: memstore.New(memstore.Config{}), err: errAway}
		s := breaker.New(store.Timeout(inner, time.Second), breaker.Config{Failures: 1, Cooldown: time.Minute})
		p := perHour(t, 100)
		_, _ = store.Take(context.Background(), s, p, "k", 1)
		time.Sleep(time.Minute + 1)
		inner.hangs = true
		tried := make(chan error)
		go func() {
			_, err := store.Take(context.Background(), s, p, "k", 1)
			tried <- err
		}()
		synctest.Wait()
		start := time.Now()
		for range 10 {
			if _, err := store.Take(context.Background(), s, p, "k", 1); !errors.Is(err, breaker.ErrOpen) {
				t.Errorf("%v", err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("others were held for %v", took)
		}
		if err := <-tried; !errors.Is(err, store.ErrTimeout) {
			t.Errorf("%v", err)
		}
	})
}

// What is the caller's doing neither opens the breaker nor closes it.
func TestCallersDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &switched{Store: memstore.New(memstore.Config{}), hangs: true}
		s := breaker.New(inner, breaker.Config{Failures: 1, Cooldown: time.Minute})
		p := perHour(t, 100)
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		for range 5 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if _, err := store.Take(ctx, s, p, "k", 1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			cancel()
			if _, err := store.Take(gone, s, p, "k", 1); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if _, err := store.Take(context.Background(), s, p, "", 1); errors.Is(err, breaker.ErrOpen) || err == nil {
				t.Errorf("no key: %v", err)
			}
		}
		inner.hangs = false
		if _, err := store.Take(context.Background(), s, p, "k", 1); err != nil {
			t.Errorf("it has opened: %v", err)
		}

		inner.err = errAway
		_, _ = store.Take(context.Background(), s, p, "k", 1)
		time.Sleep(time.Minute + 1)
		inner.err, inner.hangs = nil, true
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if _, err := store.Take(ctx, s, p, "k", 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one that tries is gone: %v", err)
		}
		inner.hangs = false
		if _, err := store.Take(context.Background(), s, p, "k", 1); err != nil {
			t.Errorf("the next may not try: %v", err)
		}
	})
}

// A store that panics does not leave the breaker waiting for ever.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &switched{Store: memstore.New(memstore.Config{}), err: errAway}
		s := breaker.New(inner, breaker.Config{Failures: 1, Cooldown: time.Minute})
		p := perHour(t, 100)
		_, _ = store.Take(context.Background(), s, p, "k", 1)
		time.Sleep(time.Minute + 1)
		kept := inner.Store
		inner.Store, inner.err = nil, nil // Take panics now
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = store.Take(context.Background(), s, p, "k", 1)
		}()
		inner.Store = kept
		if _, err := store.Take(context.Background(), s, p, "k", 1); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

func TestMistakes(t *testing.T) {
	mem := memstore.New(memstore.Config{})
	var none *memstore.Store
	p := perHour(t, 1)
	for field, s := range map[string]store.Store{
		"breaker.New: s":          breaker.New(none, breaker.Config{}),
		"breaker.Config.Failures": breaker.New(mem, breaker.Config{Failures: -1}),
		"breaker.Config.Cooldown": breaker.New(mem, breaker.Config{Cooldown: -1}),
	} {
		var a, b *algorithms.FieldError
		_, err := store.Take(context.Background(), s, p, "k", 1)
		if !errors.As(s.Validate(p), &a) || a.Field != field || !errors.As(err, &b) || b.Field != field {
			t.Errorf("%s: %v; Take: %v", field, s.Validate(p), err)
		}
		if r := store.Resolution(s); r != time.Microsecond {
			t.Errorf("%s: resolution %v", field, r)
		}
	}
	if err := breaker.New(nil, breaker.Config{Failures: -1, Cooldown: -1}).Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 3 {
		t.Errorf("three at once: %v", err)
	}
}
