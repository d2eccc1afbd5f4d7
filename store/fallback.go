package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Fallback is primary, and backup for each Take in which primary fails
// ([IsFailure]). The two count apart: when primary fails backup knows nothing of
// what was used, and when it is back, nothing of what backup let through. So with a
// backup in each of n processes a limit lets through up to n + 1 times as much,
// unless the backup is [Divide]d by n.
//
// What primary failed to give back or forget is not given back by backup, which has
// not taken it: such a group's error is primary's. What backup took and is given back
// when primary is there again, primary gives back: it may let that much more through.
// Where both fail the error joins theirs.
//
// failed is told of each failure of primary, by many callers at once; nil tells
// nobody.
func Fallback(primary, backup Store, failed func(context.Context, error)) Store {
	var mistakes []error
	if isNil(primary) {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "store.Fallback.primary", Reason: "is missing"})
	}
	if isNil(backup) {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "store.Fallback.backup", Reason: "is missing"})
	}
	if failed == nil {
		failed = func(context.Context, error) {}
	}
	return &fallback{primary, backup, failed, errors.Join(mistakes...)}
}

type fallback struct {
	primary, backup Store
	failed          func(context.Context, error)
	wrong           error
}

// Validate asks both stores.
func (f *fallback) Validate(policies ...*algorithms.Policy) error {
	if f.wrong != nil {
		return f.wrong
	}
	return errors.Join(f.primary.Validate(policies...), f.backup.Validate(policies...))
}

// Resolution is the coarser one.
func (f *fallback) Resolution() time.Duration {
	return max(Resolution(f.primary), Resolution(f.backup))
}

// Take has the first store decide that doesn't fail.
func (f *fallback) Take(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	if f.wrong != nil {
		return f.wrong
	}
	err := f.primary.Take(ctx, charges, results)
	if !IsFailure(ctx, err) {
		return err
	}
	f.failed(ctx, err)
	if slices.ContainsFunc(charges, func(c Charge) bool { return c.Cost < 0 || c.Mode == Forget }) {
		return err
	}
	if also := f.backup.Take(ctx, charges, results); also != nil {
		return errors.Join(err, also)
	}
	return nil
}
