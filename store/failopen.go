package store

import (
	"context"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// FailOpen is s, but where s fails ([IsFailure]) nothing is limited: every result
// is then the zero one, whose Limit of 0 says that nobody decided, and there is no
// error. While a store is away there are no limits at all; [Fallback] keeps some. A
// group that gives back or forgets has the store's error all the same: nobody has done
// it, and nobody is kept out by that.
//
// failed is told of each failure, by many callers at once; nil tells nobody.
func FailOpen(s Store, failed func(context.Context, error)) Store {
	if failed == nil {
		failed = func(context.Context, error) {}
	}
	return &failOpen{checkAround("FailOpen", s), failed}
}

type failOpen struct {
	around
	failed func(context.Context, error)
}

// Resolution is the store's.
func (f *failOpen) Resolution() time.Duration { return Resolution(f.store) }

// Take has the store decide, or nobody.
func (f *failOpen) Take(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	if f.wrong != nil {
		return f.wrong
	}
	err := f.store.Take(ctx, charges, results)
	if !IsFailure(ctx, err) {
		return err
	}
	f.failed(ctx, err)
	if returns(charges) {
		return err
	}
	clear(results)
	return nil
}
