package store

import (
	"context"
	"sync"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Divide is s with every limit divided by n, for what each of n replicas counts on
// its own, as behind [Fallback]: together they then let through about what one
// limit allows. A Count and a Burst are divided and rounded down, to at least 1; a
// Count below n becomes 1 in a Period that is longer in its place, so that the rate
// of all is not above the limit's. At once all replicas can let through n even where
// the Burst is less.
//
// A charge that costs more than the part of the Burst is never let through. A policy
// whose algorithm takes no other limit, such as a ban or a window whose part would be
// too long, counts whole. The part of each policy is kept for good, so make policies
// once, and not for each request.
//
// n must be at least 1: a mistake is reported by Validate and by every Take.
func Divide(s Store, n int) Store {
	var mistakes []error
	if n < 1 {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "store.Divide.n", Value: n, Reason: "must be at least 1, the number of replicas"})
	}
	return &divided{around: checkAround("Divide", s, mistakes...), n: int64(n)}
}

type divided struct {
	around
	n     int64
	parts sync.Map // of each *algorithms.Policy, its part
}

// Resolution is the store's.
func (d *divided) Resolution() time.Duration { return Resolution(d.store) }

// Validate asks the store about the parts.
func (d *divided) Validate(policies ...*algorithms.Policy) error {
	if d.wrong != nil {
		return d.around.Validate(policies...)
	}
	parts := make([]*algorithms.Policy, len(policies))
	for i, p := range policies {
		parts[i] = d.part(p)
	}
	return d.around.Validate(parts...)
}

// Take has the store decide by the parts.
func (d *divided) Take(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	if d.wrong != nil {
		return d.wrong
	}
	group := groups.Get().(*[]Charge)
	*group = append((*group)[:0], charges...) // the caller's slice stays as it is
	for i := range *group {
		(*group)[i].Policy = d.part((*group)[i].Policy)
	}
	err := d.store.Take(ctx, *group, results)
	clear(*group) // the pool must not hold on to keys
	groups.Put(group)
	return err
}

// part is p with its part of the limit.
func (d *divided) part(p *algorithms.Policy) *algorithms.Policy {
	if p == nil || p.Algorithm() == nil {
		return p // a mistake, for the store to report
	}
	if part, ok := d.parts.Load(p); ok {
		return part.(*algorithms.Policy)
	}
	part, err := algorithms.NewPolicy(p.Name(), p.Algorithm(), divide(p.Limit(), d.n))
	if err != nil {
		part = p
	}
	kept, _ := d.parts.LoadOrStore(p, part)
	return kept.(*algorithms.Policy)
}

// divide is an n-th of l.
func divide(l algorithms.Limit, n int64) algorithms.Limit {
	if l.Count < n { // Count > 0
		l.Period *= time.Duration((n + l.Count - 1) / l.Count)
		l.Count = n
	}
	l.Count /= n
	if l.Burst > 0 {
		l.Burst = max(1, l.Burst/n)
	}
	return l
}
