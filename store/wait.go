package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// ErrNever is returned where waiting is of no use: the cost is above the
// capacity of the policy, so that the charge can never be made. Nothing was
// charged.
var ErrNever = errors.New("weir: the cost is above the capacity: no wait is long enough")

// Wait makes a charge, and sleeps until it can: where it is limited, Wait sleeps
// for its RetryAfter and asks again. Nil means that it has been made.
//
// The error is
//
//   - one that matches [context.DeadlineExceeded] and says how long the wait
//     would be, at once, if ctx's deadline is not later than the end of the wait;
//   - ctx's own, as soon as ctx is done;
//   - [ErrNever], at once, if the cost is above the capacity;
//   - that of s, as it is, at the first attempt or a later one;
//   - a *[algorithms.FieldError] for a mistake in the arguments.
//
// Then nothing was taken, unless s failed, or ctx was done, in the middle of an
// attempt: sentence 13 of [Store] says what is known of that.
//
// A cost of 0 waits until something remains, and takes none of it. A negative
// cost gives back what was taken just now, and never waits.
//
// Waiting holds no place. All who wait for a key ask at the same moment and the
// first to ask gets in, be it a newcomer; a small cost overtakes a large one,
// again and again if there are many. Each unit that comes free costs as many
// attempts as there are callers waiting for it.
func Wait(ctx context.Context, s Store, p *algorithms.Policy, key string, cost int64) error {
	if isNil(s) {
		return &algorithms.FieldError{Field: "store.Wait.s", Reason: "is missing"}
	}
	for {
		wait, err := attempt(ctx, s, p, key, cost)
		if wait == 0 {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// attempt asks once. With a wait, the charge was limited and is to be asked for
// again after it; without one it has been made, or err says why it won't be.
func attempt(ctx context.Context, s Store, p *algorithms.Policy, key string, cost int64) (wait time.Duration, err error) {
	r, err := Take(ctx, s, p, key, cost)
	switch {
	case err != nil || !r.Limited:
		return 0, err
	case r.RetryAfter == algorithms.Never:
		return 0, ErrNever
	}
	// No algorithm should say 0, and one that does should not keep us spinning.
	wait = max(r.RetryAfter, time.Microsecond)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return 0, fmt.Errorf("weir: the charge would have to wait for %v: %w", wait, context.DeadlineExceeded)
	}
	return wait, nil
}

// sleep returns after d, or with ctx's error once ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// After is [Wait] for a caller that goes on: it returns at once, and calls f when
// the wait is over, with nil when the charge has been made or with the error that
// Wait would return. f is called exactly once, in a goroutine of its own, maybe
// before After has returned. A charge that was made is nil even if ctx is done
// by then.
//
// Between attempts there is no goroutine, only a timer and a function that is
// registered with ctx: thousands can wait. A ctx that is not of package context
// can make [context.AfterFunc] start a goroutine for it.
//
// A nil f is a mistake that there is nobody to tell of: the charge is made all
// the same.
func After(ctx context.Context, s Store, p *algorithms.Policy, key string, cost int64, f func(error)) {
	if f == nil {
		f = func(error) {}
	}
	if isNil(s) {
		go f(&algorithms.FieldError{Field: "store.After.s", Reason: "is missing"})
		return
	}
	w := &waiter{ctx: ctx, store: s, policy: p, key: key, cost: cost, f: f}
	// The timer is there before anybody can need it, and set when all else is.
	w.timer = time.AfterFunc(math.MaxInt64, w.ask)
	w.timer.Stop()
	w.leave = context.AfterFunc(ctx, w.cancel)
	w.timer.Reset(0)
}

// waiter is a charge that waits for [After].
//
// Who may call f is said by the timer alone. While it is set, that is whoever
// stops it; once it has fired, the one ask that it started, until that sets it
// again or has called f.
type waiter struct {
	ctx    context.Context
	store  Store
	policy *algorithms.Policy
	key    string
	cost   int64
	f      func(error)
	timer  *time.Timer
	leave  func() bool // takes cancel back from ctx
}

// ask makes an attempt, in the timer's goroutine.
func (w *waiter) ask() {
	wait, err := attempt(w.ctx, w.store, w.policy, w.key, w.cost)
	if wait == 0 {
		w.leave()
		w.f(err)
		return
	}
	w.timer.Reset(wait)
	// ctx may have been done during the attempt, when cancel found no timer set.
	if w.ctx.Err() != nil {
		w.cancel()
	}
}

// cancel ends the wait if it can stop the timer. If not, an attempt is under way,
// which sees for itself that ctx is done, or all is over.
func (w *waiter) cancel() {
	if w.timer.Stop() {
		w.f(w.ctx.Err())
	}
}
