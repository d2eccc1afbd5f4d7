package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// IsFailure tells whether err, which a Take with ctx has returned, is a failure of
// the store: not the end of ctx, which is the caller's own doing, nor a mistake in
// the charges, which no other store would forgive either. It is what [FailOpen],
// [Fallback] and package breaker act on.
func IsFailure(ctx context.Context, err error) bool {
	if err == nil || ended(ctx) || errors.Is(err, ErrDuplicate) || errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	var mistake *algorithms.FieldError
	return !errors.As(err, &mistake)
}

// ended tells whether ctx has ended, or its deadline has passed: a connection that has
// the same deadline can find out first.
func ended(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// around is what stores around another share.
type around struct {
	store Store
	wrong error // what is wrong with the arguments
}

// checkAround reports what is wrong with the arguments of a constructor: that there
// is no store, and other mistakes.
func checkAround(name string, s Store, mistakes ...error) around {
	if isNil(s) {
		mistakes = append([]error{&algorithms.FieldError{Field: "store." + name + ".s", Reason: "is missing"}}, mistakes...)
	}
	return around{s, errors.Join(mistakes...)}
}

// Validate asks the store.
func (a *around) Validate(policies ...*algorithms.Policy) error {
	if isNil(a.store) {
		return a.wrong
	}
	return errors.Join(a.wrong, a.store.Validate(policies...))
}

// returns tells whether a group gives back or forgets.
func returns(charges []Charge) bool {
	return slices.ContainsFunc(charges, func(c Charge) bool { return c.Cost < 0 || c.Mode == Forget })
}
