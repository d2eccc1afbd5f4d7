package middleware

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// returned keeps a charge from being given back twice.
type returned struct {
	sync.Mutex
	settled bool
	was     []bool // by charge; nil while nothing was
}

// settle tells whether the request was not settled yet, and that it is.
func (b *returned) settle() bool {
	b.Lock()
	defer b.Unlock()
	first := !b.settled
	b.settled = true
	return first
}

// mark tells whether charge i was not given back yet, and marks it.
func (b *returned) mark(i, charges int) bool {
	b.Lock()
	defer b.Unlock()
	if b.was == nil {
		b.was = make([]bool, charges)
	}
	first := !b.was[i]
	b.was[i] = true
	return first
}

var errOther = errors.New("weir: the Decision is not of this Middleware")

// Refund gives back what d, a Decision of this Middleware, took: all of it, or
// under the named policies only. It is for handlers that know better than
// Rule.Refund whether a request should count. A charge is given back once, however
// often it is asked for; where nothing was taken, as by a request that was refused
// or exempt, nothing is given back. Nothing is given back to a window that wasn't
// charged, so a refund that comes late can do nothing; nor to a queue, which a rule
// with Pace is.
//
// The error is the store's, after which a charge may or may not be given back, and
// is not tried again; or that of ctx, if it was done before; or a *[FieldError] for
// a name that no policy of the Config has.
//
// ctx bounds the wait for the store. That of the request is done when its client
// is gone.
func (m *Middleware) Refund(ctx context.Context, d Decision, policies ...string) error {
	n, err := m.of(d, policies)
	if n == nil || err != nil {
		return err
	}
	return n.giveBack(ctx, func(c *store.Charge, i int) bool {
		return len(policies) == 0 || slices.Contains(policies, c.Policy.Name())
	})
}

// Forget makes the keys of d, a Decision of this Middleware, as if they had never
// been seen: under all policies, the ban's too, or under the named ones only. It is
// for what clears a slate, such as a log-in that has succeeded after failures.
//
// What d took is not given back any more, also where this fails. The error is the
// store's, or that of ctx, or a *[FieldError] for a name that no policy of the
// Config has.
func (m *Middleware) Forget(ctx context.Context, d Decision, policies ...string) error {
	n, err := m.of(d, policies)
	if n == nil || err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var charges []store.Charge
	for i, c := range n.decision.Charges {
		if c.Policy != nil && (len(policies) == 0 || slices.Contains(policies, c.Policy.Name())) {
			n.back.mark(i, len(n.decision.Charges)) // there is nothing left to give back
			charges = append(charges, store.Charge{Policy: c.Policy, Key: c.Key, Mode: store.Forget})
		}
	}
	if len(charges) == 0 {
		return nil
	}
	return n.set.store.Take(ctx, charges, make([]algorithms.Result, len(charges)))
}

// of is the node of d, or nil where nothing was decided.
func (m *Middleware) of(d Decision, policies []string) (*node, error) {
	switch {
	case m == nil:
		return nil, errNil
	case d.node == nil:
		return nil, nil
	case d.node.by != m:
		return nil, errOther
	}
	var errs []error
	for _, name := range policies {
		if !d.node.set.knows(name) {
			errs = append(errs, &FieldError{Field: "policies", Value: name, Reason: "is the name of no policy in the Config"})
		}
	}
	return d.node, errors.Join(errs...)
}

func (s *settings) knows(name string) bool {
	if s.ban != nil && s.ban.Name() == name {
		return true
	}
	return slices.ContainsFunc(s.rules, func(rule Rule) bool {
		return slices.ContainsFunc(rule.policies(), func(p *algorithms.Policy) bool { return p.Name() == name })
	})
}

// giveBack gives back those charges that were taken and that which wants.
func (n *node) giveBack(ctx context.Context, which func(c *store.Charge, i int) bool) error {
	d := &n.decision
	if d.Refused >= 0 {
		return nil
	}
	if err := ctx.Err(); err != nil { // the store would do nothing
		return err
	}
	var charges []store.Charge
	for i := range d.Charges {
		c, r := &d.Charges[i], &d.Results[i]
		taken := c.Cost > 0 && c.Mode != store.Strike && r.Limit > 0 && !r.Limited // with Limit 0 nobody decided
		queued := i < len(n.set.rules) && n.set.rules[i].Pace                      // those behind have their turns already
		if taken && !queued && which(c, i) && n.back.mark(i, len(d.Charges)) {
			charges = append(charges, store.Charge{Policy: c.Policy, Key: c.Key, Cost: -c.Cost, Age: time.Since(d.at)})
		}
	}
	if len(charges) == 0 {
		return nil
	}
	return n.set.store.Take(ctx, charges, make([]algorithms.Result, len(charges)))
}

// refundTime is how long a refund by Rule.Refund may take, which the end of the
// answer waits for.
const refundTime = time.Second

// Settle gives back what r, which Allow let pass and has returned, is not to pay by
// Rule.Refund, now that it was served with this status. [Middleware.Handler] calls
// it, and so do the adapters; it is for adapters to other routers. The first call
// for a request counts. Leave it out where Allow has returned the very request that
// it was given: that one was not counted, or further out, where it is not over yet.
func (m *Middleware) Settle(r *http.Request, status int) {
	n := m.toSettle(r)
	if n == nil || !n.back.settle() {
		return
	}
	// The request's own context is done where the client is gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(n.Context), refundTime)
	defer cancel()
	err := n.giveBack(ctx, func(_ *store.Charge, i int) bool {
		return n.set.rules[i].Refund != nil && n.set.rules[i].Refund(status) // of the ban, at the end, nothing was taken
	})
	if err != nil {
		n.set.refunds.report(ctx, err)
	}
}

// toSettle is the node of r, a request that Allow has returned, where a rule counts
// by outcome; or nil.
func (m *Middleware) toSettle(r *http.Request) *node {
	n, ok := r.Context().Value(m).(*node)
	if !ok || !n.set.settles || !n.charged {
		return nil
	}
	return n
}

// serve serves r by next and settles it.
func (m *Middleware) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	wrapped, status := record(w)
	defer m.Settle(r, http.StatusInternalServerError) // counts where next panics, which it does still
	next.ServeHTTP(wrapped, r)
	m.Settle(r, status.code())
}
