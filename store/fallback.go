package store

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Fallback is primary, and backup for each Take in which primary fails
// ([IsFailure]). The two count apart: when primary fails backup knows nothing of
// what was used, and when it is back, nothing of what backup let through. So with a
// backup in each of n processes a limit lets through up to n + 1 times as much,
// unless the backup is [Divide]d by n.
//
// While primary fails, backup gives back what was taken since primary last answered,
// as [Charge].Age tells, for that is what backup took. What is older primary has taken,
// or nobody knows: a group with such a charge has primary's error. What backup took and
// is given back when primary is there again, primary gives back: it may let that much
// more through. What is forgotten backup forgets too, whatever becomes of primary, and
// the error is primary's.
//
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
	return &fallback{primary: primary, backup: backup, failed: failed, wrong: errors.Join(mistakes...), start: time.Now()}
}

type fallback struct {
	primary, backup Store
	failed          func(context.Context, error)
	wrong           error

	start    time.Time
	answered atomic.Int64 // when primary last did, since the start
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
	failure := IsFailure(ctx, err)
	if err == nil {
		f.answered.Store(int64(time.Since(f.start)))
	}
	if forgets := f.forget(ctx, charges); !failure || forgets {
		if failure {
			f.failed(ctx, err)
		}
		return err
	}
	f.failed(ctx, err)
	if returns(charges) && !f.isBackups(charges) {
		return err
	}
	if also := f.backup.Take(ctx, charges, results); also != nil {
		return errors.Join(err, also)
	}
	return nil
}

// forget has backup forget what a group forgets, and tells whether that is anything.
// Its failure says nothing: it is the primary that counts.
func (f *fallback) forget(ctx context.Context, charges []Charge) bool {
	var forgotten []Charge
	for _, c := range charges {
		if c.Mode == Forget {
			forgotten = append(forgotten, c)
		}
	}
	if forgotten != nil {
		_ = f.backup.Take(ctx, forgotten, make([]algorithms.Result, len(forgotten)))
	}
	return forgotten != nil
}

// isBackups tells whether all that a group gives back was taken since primary last
// answered.
func (f *fallback) isBackups(charges []Charge) bool {
	since := time.Since(f.start) - time.Duration(f.answered.Load())
	return !slices.ContainsFunc(charges, func(c Charge) bool { return c.Cost < 0 && c.Age >= since })
}
