package middleware

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// decide fills n's decision. Until it returns, n has none to show to a Key.
func (s *settings) decide(r *http.Request, n *node) error {
	err := s.ask(r, n)
	n.decided = true
	return err
}

func (s *settings) ask(r *http.Request, n *node) error {
	count := len(s.rules)
	if s.ban != nil {
		count++
	}
	n.room(count)
	if err := s.blocks(r); err != nil {
		return err
	}
	d := &n.decision
	var noKey error
	charged := 0
	for i := range d.Charges {
		charge, err := s.charge(r, d, i)
		switch {
		case err == nil:
			d.Charges[i] = charge
			charged++
			s.warnings.count(i, charge.Key)
		case errors.Is(err, keyfunc.ErrSkip):
		case i < len(s.rules) && s.rules[i].Shadow: // left out too: it refuses nothing
			s.trials.report(r.Context(), err)
		case !errors.Is(err, keyfunc.ErrNoKey):
			return err
		case noKey == nil: // as it is: joining allocates, and this may be a flood
			noKey = err
		default:
			noKey = errors.Join(noKey, err)
		}
	}
	if charged > 0 {
		if err := s.take(r.Context(), n, charged); err != nil {
			clear(d.Results) // they mean nothing
			return err
		}
		n.charged = true
	}
	n.conclude()
	switch {
	case d.Refused >= 0:
		return nil
	case noKey != nil:
		return noKey
	}
	d.Delay = s.turn(d)
	return nil
}

// blocks tells why r may not be decided at all.
func (s *settings) blocks(r *http.Request) error {
	if s.block == nil {
		return nil
	}
	blocked, err := s.block(r)
	if err == nil && blocked {
		err = ErrBlocked
	}
	return err
}

// charge is what rule i, or the ban after the last rule, asks of r.
func (s *settings) charge(r *http.Request, d *Decision, i int) (store.Charge, error) {
	if i == len(s.rules) {
		return s.strike(r, d)
	}
	return s.rules[i].charge(r)
}

// take charges those of n's charges that have a policy, as one group.
func (s *settings) take(ctx context.Context, n *node, charged int) error {
	d := &n.decision
	d.at = time.Now()
	n.asked = true
	if s.observe != nil {
		defer func() { n.latency = time.Since(d.at) }()
	}
	if charged == len(d.Charges) {
		err := s.store.Take(ctx, d.Charges, d.Results)
		for i := range d.Results {
			trim(&d.Results[i])
		}
		return err
	}
	charges := make([]store.Charge, 0, charged)
	for _, c := range d.Charges {
		if c.Policy != nil {
			charges = append(charges, c)
		}
	}
	results := make([]algorithms.Result, charged)
	if err := s.store.Take(ctx, charges, results); err != nil {
		return err
	}
	for i := range d.Charges {
		if d.Charges[i].Policy != nil {
			d.Results[i], results = results[0], results[1:]
			trim(&d.Results[i])
		}
	}
	return nil
}

// trim keeps r to what a Result can say. A store that answers anything else is
// broken, and yet headers must be numbers that clients can read.
func trim(r *algorithms.Result) {
	r.Limit = max(0, r.Limit)
	r.Remaining = max(0, min(r.Remaining, r.Limit))
	if r.RetryAfter != algorithms.Never {
		r.RetryAfter = max(0, min(r.RetryAfter, cut))
	}
	r.ResetAfter = max(0, min(r.ResetAfter, cut))
}
