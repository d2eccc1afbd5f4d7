package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// ErrTimeout says that a store did not answer in the time that [Timeout] gives it.
// What was asked may have been charged.
var ErrTimeout = errors.New("weir: the store did not answer in time")

// Timeout is s with at most d for each Take, or less where the caller's context
// ends sooner; that is then the caller's end and not [ErrTimeout]. s must heed its
// context, as redisstore does. d must be positive: a mistake is reported by
// Validate and by every Take.
func Timeout(s Store, d time.Duration) Store {
	var mistakes []error
	if d <= 0 {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "store.Timeout.d", Value: d, Reason: "must be positive, such as 50ms"})
	}
	return &timeout{checkAround("Timeout", s, mistakes...), d}
}

type timeout struct {
	around
	most time.Duration
}

// Resolution is the store's.
func (t *timeout) Resolution() time.Duration { return Resolution(t.store) }

// Take has the store decide while there is time.
func (t *timeout) Take(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	if t.wrong != nil {
		return t.wrong
	}
	bounded, cancel := context.WithTimeoutCause(ctx, t.most, ErrTimeout)
	defer cancel()
	err := t.store.Take(bounded, charges, results)
	if err != nil && !ended(ctx) && ended(bounded) {
		return fmt.Errorf("%w (%v): %w", ErrTimeout, t.most, err)
	}
	return err
}
