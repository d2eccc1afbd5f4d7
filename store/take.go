package store

import (
	"context"
	"sync"

	"github.com/weirgo/weir/algorithms"
)

// single holds the two slices of a group of one, so that a decision allocates
// nothing.
type single struct {
	charge [1]Charge
	result [1]algorithms.Result
}

var singles = sync.Pool{New: func() any { return new(single) }}

// Take makes one charge. The cost may be 0, to look, or negative, to give back
// what was taken just now.
func Take(ctx context.Context, s Store, p *algorithms.Policy, key string, cost int64) (algorithms.Result, error) {
	one := singles.Get().(*single)
	one.charge[0] = Charge{Policy: p, Key: key, Cost: cost}
	err := s.Take(ctx, one.charge[:], one.result[:])
	r := one.result[0]
	*one = single{} // the pool must not hold on to keys
	singles.Put(one)
	if err != nil {
		return algorithms.Result{}, err
	}
	return r, nil
}
