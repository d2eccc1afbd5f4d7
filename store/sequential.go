package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// undoTime is how long a [Sequential] tries to give back what it took, also
// where the caller has gone.
const undoTime = time.Second

// Sequential is s with the charges of a group made one after the other, for a
// store that can't decide them as one: redisstore on a cluster without a tag.
// Where one is refused, those made before it are given back, as old as they are
// by then. A group of one is handed to s as it is.
//
// For callers that do not meet, the answers are those of one decision. What
// can't be promised:
//
//   - No group is atomic (sentence 1 of [Store]). For a moment other callers see
//     a part of it and can be refused because of it, even by a group that is
//     refused itself: two groups can refuse each other where one would have fit.
//     They are never let through because of it.
//   - Nor have its charges one time (sentence 2).
//   - A refused group is undone only as exactly as the algorithm gives back, and
//     its keys live as long as the give-back says (sentence 4). Where age counts,
//     what would drain during the round trips stays charged for about that time.
//   - If the process ends in between, or s fails, what was taken stays charged
//     until it drains. A charge that s returns an error for may have been made,
//     and is not given back: it may not have been. Where something of the group
//     has been given back or forgotten, an error after it does not undo that.
//
// An error ends the group. What was made is given back, for a second at most and
// also if ctx is done; if that fails, the error has both. A refused group whose
// charges can't be given back is an error too.
//
// Each charge is a round trip: first looks and strikes, then what is taken, then
// shadows, then what is given back or forgotten. A refused group costs another for
// each charge made, for each strike, and for each charge of the rest that does not
// fit.
//
// Validate asks s for each policy alone. A missing s is reported by it, and by
// every Take.
func Sequential(s Store) Store {
	q := &sequential{store: s, now: time.Now}
	if isNil(s) {
		q.wrong = &algorithms.FieldError{Field: "store.Sequential.s", Reason: "is missing"}
	}
	return q
}

// sequential is what [Sequential] makes.
type sequential struct {
	store Store
	now   func() time.Time // with a monotonic clock
	wrong error            // what is wrong with the arguments
}

// Validate asks the store for each policy alone.
func (s *sequential) Validate(policies ...*algorithms.Policy) error {
	if s.wrong != nil {
		return s.wrong
	}
	if len(policies) == 0 {
		return s.store.Validate()
	}
	var errs []error
	told := map[string]bool{} // what is wrong with the store itself, it says for each policy
	for i, p := range policies {
		if p == nil {
			errs = append(errs, &algorithms.FieldError{Field: fmt.Sprintf("policies[%d]", i), Reason: "is missing"})
		} else if err := s.store.Validate(p); err != nil && !told[err.Error()] {
			told[err.Error()] = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Resolution is the store's.
func (s *sequential) Resolution() time.Duration { return Resolution(s.store) }

// Take makes the charges one by one.
func (s *sequential) Take(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	if err := Check(ctx, charges, results); err != nil {
		return err
	}
	if s.wrong != nil {
		return s.wrong
	}
	if len(charges) < 2 {
		return s.store.Take(ctx, charges, results)
	}
	g := &sequence{sequential: s, charges: charges, results: results, start: s.now(), asked: make([]bool, len(charges))}
	refused, err := g.take(ctx)
	if err != nil || refused {
		err = errors.Join(err, g.undo(ctx))
	}
	if err != nil || !refused {
		return err
	}
	return g.refuse(ctx)
}

// sequence is a group on its way.
type sequence struct {
	*sequential
	charges []Charge
	results []algorithms.Result
	start   time.Time
	asked   []bool // which charges have a result
	made    []made // what was taken, in order

	charge [1]Charge // what the store sees
	result [1]algorithms.Result
}

// made is a charge that undo has to give back.
type made struct {
	i      int
	before time.Time
}

// steps are the order of a group: what changes nothing comes first, since it may
// refuse the rest, and what can't be undone comes last, when nothing refuses any
// more.
var steps = [...]func(*Charge) bool{
	func(c *Charge) bool { return c.Mode == Strike || c.Mode == Enforce && c.Cost == 0 },
	func(c *Charge) bool { return c.Mode == Enforce && c.Cost > 0 },
	func(c *Charge) bool { return c.Mode == Shadow && c.Cost >= 0 },
	func(c *Charge) bool { return c.Mode == Forget || c.Mode != Strike && c.Cost < 0 },
}

// take makes the charges as long as none is refused.
func (g *sequence) take(ctx context.Context) (refused bool, err error) {
	for n, step := range steps {
		for i := range g.charges {
			c := &g.charges[i]
			if !step(c) {
				continue
			}
			// Alone, a mode makes no difference but for these two.
			mode, cost := Enforce, c.Cost
			switch c.Mode {
			case Strike:
				cost = 0
			case Forget:
				mode = Forget
			}
			if err := g.ask(ctx, i, mode, cost); err != nil {
				return false, err
			}
			refused = refused || g.results[i].Limited && c.Mode != Shadow
			if refused && n > 0 {
				return true, nil
			}
		}
		if refused { // after all looks, so that all strikes have been looked at
			return true, nil
		}
	}
	return false, nil
}

// ask makes charge i in this mode, with this cost.
func (g *sequence) ask(ctx context.Context, i int, mode Mode, cost int64) error {
	before := g.now()
	g.charge[0] = g.charges[i]
	c := &g.charge[0]
	c.Cost, c.Mode = cost, mode
	if cost < 0 {
		c.Age = older(c.Age, before.Sub(g.start))
	}
	if err := g.store.Take(ctx, g.charge[:], g.result[:]); err != nil {
		return err
	}
	g.results[i], g.asked[i] = g.result[0], true
	if cost > 0 && !g.result[0].Limited && g.charges[i].Mode != Strike {
		g.made = append(g.made, made{i, before})
	}
	return nil
}

// undo gives back what was taken, the last first. It goes on after an error, so
// that as little as possible stays charged.
func (g *sequence) undo(ctx context.Context) error {
	if len(g.made) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var errs []error
	for n := len(g.made) - 1; n >= 0; n-- {
		m := g.made[n]
		g.charge[0] = g.charges[m.i]
		c := &g.charge[0]
		c.Cost, c.Mode, c.Age = -c.Cost, Enforce, older(0, g.now().Sub(m.before))
		if err := g.store.Take(ctx, g.charge[:], g.result[:]); err != nil {
			errs = append(errs, fmt.Errorf("weir: policy %s: not given back: %w", c.Policy.Name(), err))
			continue
		}
		g.results[m.i] = fitting(g.result[0])
	}
	g.made = g.made[:0]
	return errors.Join(errs...)
}

// refuse answers a refused group: it takes the strikes, and looks at the charges
// that were not asked for.
func (g *sequence) refuse(ctx context.Context) error {
	for i := range g.charges {
		c := &g.charges[i]
		if c.Mode != Strike {
			continue
		}
		// Somebody else may have struck since the look. Each turn asks for less.
		for cost := min(c.Cost, g.results[i].Remaining); cost > 0; cost = min(cost-1, g.results[i].Remaining) {
			if err := g.ask(ctx, i, Enforce, cost); err != nil {
				return err
			}
			if !g.results[i].Limited {
				break
			}
		}
	}
	for i := range g.charges {
		if g.asked[i] {
			continue
		}
		if err := g.ask(ctx, i, Enforce, 0); err != nil {
			return err
		}
		c := &g.charges[i]
		if c.Cost == 0 && c.Mode != Forget {
			continue
		}
		if c.Cost <= g.results[i].Remaining {
			g.results[i] = fitting(g.results[i])
			continue
		}
		// How long it would have to wait, only a refusal tells. If it fits by now,
		// it is given back.
		err := g.ask(ctx, i, Enforce, c.Cost)
		if err := errors.Join(err, g.undo(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// fitting is the result of a charge that fits in a group that is refused.
func fitting(r algorithms.Result) algorithms.Result {
	r.Limited, r.RetryAfter = false, 0
	return r
}

// older is an age after some more time.
func older(age, by time.Duration) time.Duration {
	by = max(by, 0)
	if age > math.MaxInt64-by {
		return math.MaxInt64
	}
	return age + by
}
