package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// A charge is made as soon as it fits, and not before.
func TestWaitAdmits(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		s, p, start := memstore.New(memstore.Config{}), limited(t, algorithms.Limit{Count: 1, Period: 10 * time.Second, Burst: 3}), time.Now()
		for _, c := range []struct {
			cost int64
			at   time.Duration
		}{{1, 0}, {2, 0}, {1, 10 * time.Second}, {3, 40 * time.Second}, {2, 60 * time.Second}} {
			if err := w(t.Context(), s, p, "k", c.cost); err != nil || time.Since(start) != c.at {
				t.Errorf("cost %d is let in at %v, %v; want %v", c.cost, time.Since(start), err, c.at)
			}
			if r := take(t, s, p, 0); c.at > 0 && (r.Remaining != 0 || r.RetryAfter != 10*time.Second) {
				t.Errorf("cost %d at %v leaves %+v", c.cost, c.at, r)
			}
		}
	})
}

// However many wait at once, all get in, at the rate.
func TestWaitMany(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		s, p, start := memstore.New(memstore.Config{}), limited(t, algorithms.PerSecond(10).WithBurst(2)), time.Now()
		var mu sync.Mutex
		var at []time.Duration
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				err := w(t.Context(), s, p, "k", 1)
				mu.Lock()
				defer mu.Unlock()
				if at = append(at, time.Since(start)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		slices.Sort(at)
		for i, got := range at {
			if want := max(0, time.Duration(i-1)*100*time.Millisecond); got != want {
				t.Errorf("number %d is let in at %v, want %v", i+1, got, want)
			}
		}
	})
}

// A wait that the deadline would cut off does not begin, and takes nothing.
func TestWaitDeadline(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		for name, c := range map[string]struct {
			deadline, over time.Duration
			made           bool
		}{
			"sooner": {10*time.Second - time.Microsecond, 0, false},
			"just":   {10 * time.Second, 0, false},
			"later":  {10*time.Second + time.Nanosecond, 10 * time.Second, true},
		} {
			s, p, start := memstore.New(memstore.Config{}), everyTen(t), time.Now()
			take(t, s, p, 1)
			before := take(t, s, p, 0)
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			err := w(ctx, s, p, "k", 1)
			if (err == nil) != c.made || time.Since(start) != c.over {
				t.Errorf("%s: %v after %v", name, err, time.Since(start))
			}
			if !c.made {
				if !errors.Is(err, context.DeadlineExceeded) || err == context.DeadlineExceeded || !strings.Contains(err.Error(), "10s") || ctx.Err() != nil {
					t.Errorf("%s: %v; want it to say how long", name, err)
				}
				if after := take(t, s, p, 0); after != before {
					t.Errorf("%s: before %+v, after %+v", name, before, after)
				}
			}
			cancel()
		}

		// At a later attempt, after another has been faster.
		s := &answers{take: func(_ context.Context, n int) (algorithms.Result, error) {
			return refusal(time.Duration(1+9*n) * time.Second), nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := w(ctx, s, everyTen(t), "k", 1); !errors.Is(err, context.DeadlineExceeded) || s.calls != 2 || time.Since(start) != time.Second {
			t.Errorf("%v after %v and %d attempts", err, time.Since(start), s.calls)
		}
	})
}

// A ctx that is done ends the sleep with its own error; one that was done before
// gives it at once. Neither takes anything.
func TestWaitCancelled(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		for _, after := range []time.Duration{0, 3 * time.Second} {
			s, p, start := memstore.New(memstore.Config{}), everyTen(t), time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			if after == 0 {
				cancel()
			} else {
				take(t, s, p, 1)
				time.AfterFunc(after, cancel)
			}
			if err := w(ctx, s, p, "k", 1); err != context.Canceled || time.Since(start) != after {
				t.Errorf("cancelled after %v: %v after %v", after, err, time.Since(start))
			}
			time.Sleep(time.Until(start.Add(10 * time.Second)))
			if r := take(t, s, p, 1); r.Limited {
				t.Errorf("cancelled after %v, and charged: %+v", after, r)
			}
		}
	})
}

// While an attempt is under way, its answer decides: a charge that was made is
// no error, and one that was not waits no longer.
func TestWaitCancelledInAttempt(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		for last := range 2 {
			for _, c := range []struct {
				r    algorithms.Result
				err  error
				want error
			}{
				{algorithms.Result{Limit: 1}, nil, nil},
				{refusal(time.Second), nil, context.Canceled},
				{refusal(algorithms.Never), nil, store.ErrNever},
				{algorithms.Result{}, errAway, errAway},
			} {
				ctx, cancel := context.WithCancel(t.Context())
				start := time.Now()
				s := &answers{take: func(_ context.Context, n int) (algorithms.Result, error) {
					if n < last {
						return refusal(time.Second), nil
					}
					cancel()
					synctest.Wait() // all who hear of it have done what they do
					return c.r, c.err
				}}
				err := w(ctx, s, everyTen(t), "k", 1)
				if took := time.Since(start); err != c.want || took != time.Duration(last)*time.Second || s.calls != last+1 {
					t.Errorf("cancelled in attempt %d, answered %+v, %v: %v after %v and %d attempts, want %v", last, c.r, c.err, err, took, s.calls, c.want)
				}
			}
		}
	})
}

// What is above the capacity is not waited for.
func TestWaitNever(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		s, p, start := memstore.New(memstore.Config{}), everyTen(t), time.Now()
		if err := w(t.Context(), s, p, "k", 2); !errors.Is(err, store.ErrNever) || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if r := take(t, s, p, 0); r.Remaining != 1 {
			t.Errorf("and left %+v", r)
		}
	})
}

// A look waits until something is there and leaves it; a give-back does not wait.
func TestWaitCosts(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		s, p, start := memstore.New(memstore.Config{}), everyTen(t), time.Now()
		for step, c := range []struct {
			cost, remaining int64
			at              time.Duration
		}{{0, 1, 0}, {1, 0, 0}, {-1, 1, 0}, {1, 0, 0}, {0, 1, 10 * time.Second}} {
			if err := w(t.Context(), s, p, "k", c.cost); err != nil || time.Since(start) != c.at {
				t.Errorf("step %d, cost %d: at %v, %v", step, c.cost, time.Since(start), err)
			}
			if r := take(t, s, p, 0); r.Remaining != c.remaining {
				t.Errorf("step %d, cost %d: %+v, want %d to remain", step, c.cost, r, c.remaining)
			}
		}
	})
}

// A store's error ends the wait as it is.
func TestWaitStoreFails(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		for fails := range 3 {
			start := time.Now()
			s := &answers{take: func(_ context.Context, n int) (algorithms.Result, error) {
				if n == fails {
					return refusal(time.Hour), errAway
				}
				return refusal(time.Second), nil
			}}
			if err := w(t.Context(), s, everyTen(t), "k", 1); err != errAway || time.Since(start) != time.Duration(fails)*time.Second || s.calls != fails+1 {
				t.Errorf("attempt %d fails: %v after %v and %d attempts", fails, err, time.Since(start), s.calls)
			}
		}
	})
}

func TestWaitMistakes(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		form := strings.TrimPrefix(t.Name(), "TestWaitMistakes/")
		s := memstore.New(memstore.Config{})
		for _, c := range []struct {
			store store.Store
			p     *algorithms.Policy
			key   string
			want  string
		}{
			{nil, everyTen(t), "k", "store." + form + ".s"},
			{(*memstore.Store)(nil), everyTen(t), "k", "store." + form + ".s"},
			{s, nil, "k", "charges[0].Policy"},
			{s, everyTen(t), "", "charges[0].Key"},
		} {
			err := w(t.Context(), c.store, c.p, c.key, 1)
			if mistake := (*algorithms.FieldError)(nil); !errors.As(err, &mistake) || mistake.Field != c.want {
				t.Errorf("%v, want a mistake in %s", err, c.want)
			}
		}
	})
}

// Where an algorithm says to try again at once, for ever, time goes on.
func TestWaitDoesNotSpin(t *testing.T) {
	waits(t, func(t *testing.T, w wait) {
		s := &answers{take: func(_ context.Context, n int) (algorithms.Result, error) {
			if n > 1000 {
				return algorithms.Result{}, errAway // not to run for ever if it does
			}
			return refusal(0), nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Microsecond, cancel)
		if err := w(ctx, s, everyTen(t), "k", 1); err != context.Canceled {
			t.Errorf("%v after %d attempts", err, s.calls)
		}
	})
}
