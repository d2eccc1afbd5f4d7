// Package middleware limits net/http handlers: it finds the keys of a request,
// asks a store, and answers 429 or lets the request pass, with headers that say
// what is left.
//
// [Middleware.Check] decides, [Middleware.Allow] decides and writes,
// [Middleware.Handler] wraps; the adapters for routers use the second.
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

// Middleware applies the rules of its [Config] to requests. It is safe for
// concurrent use. A nil Middleware, which is what New returns with an error,
// answers every request with 500: a limit that could not be made is no open
// door.
type Middleware struct {
	store  store.Store
	rules  []Rule
	ban    *algorithms.Policy
	banKey keyfunc.Func // nil: that of the first rule
	skip   func(*http.Request) bool
	exempt keyfunc.Match
	block  keyfunc.Match
	denied func(http.ResponseWriter, *http.Request, Decision)
	failed func(http.ResponseWriter, *http.Request, error)
	log    *failureLog
	shadow *failureLog // of its own, so that a rule on trial hides no failure

	warnings *warnings
}

var errNil = errors.New("weir: the Middleware is nil: New returned an error")

// ErrBlocked is why a request that Config.Block matches may not pass.
var ErrBlocked = errors.New("weir: the request is blocked")

// Handler limits next. Requests that are refused do not reach it. The
// ResponseWriter is handed on as it is. If next is nil, those that may pass are
// answered with 500.
//
// A Middleware counts a request once, however often it is mounted on its way.
// It knows a request by its context: one that a handler makes with the context
// of the request it serves is the same request, and is not counted again. Two
// Middlewares count twice, also where their policies have one name and one store.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	if next == nil {
		next = http.HandlerFunc(problem{Status: http.StatusInternalServerError}.write)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r, ok := m.Allow(w, r); ok {
			next.ServeHTTP(w, r)
		}
	})
}

// Allow decides r and sets the headers of the answer. If r may pass, it returns
// the request to go on with, whose context carries the Decision for
// [FromContext]; if not, it has written the answer. It returns when the turn of
// the request has come, where a rule has Pace, or its context is done.
func (m *Middleware) Allow(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if m == nil {
		problem{Status: http.StatusInternalServerError}.write(w, r)
		return r, false
	}
	ctx := r.Context()
	if ctx.Value(m) != nil || m.passes(r) {
		return r, true
	}
	n := &node{Context: ctx, by: m}
	r = r.WithContext(n) // for the keys, which it tells whom to give notice to
	err := m.decide(r, n)
	if err != nil {
		m.log.report(ctx, err)
	}
	var held time.Duration
	if n.decision.Delay > 0 { // and so err is nil
		held, err = hold(ctx, n.decision.Delay)
	}
	n.show(w.Header(), held)
	if err != nil {
		m.failed(w, r, err)
		return r, false
	}
	if n.decision.Refused >= 0 {
		setRefusal(w.Header(), n.decision.Results[n.decision.Refused].RetryAfter)
		m.denied(w, r, n.decision)
		return r, false
	}
	return r, true
}

// Check decides r without writing anything. Unlike Allow it counts the request
// whenever it is called, and does not hold it: Decision.Delay is the caller's to
// wait for.
//
// The error is [keyfunc.ErrNoKey] where a rule or the ban found no key and no
// other refused (the rules with a key were charged), the store's error, or that
// of a Key, a Cost or BanKey (nothing was charged). What is wrong with a Shadow
// rule goes to the log.
func (m *Middleware) Check(r *http.Request) (Decision, error) {
	if m == nil {
		return Decision{Refused: -1}, errNil
	}
	if m.passes(r) {
		return Decision{Refused: -1}, nil
	}
	ctx := r.Context()
	n := &node{Context: ctx, by: m}
	asked := r.WithContext(n)
	err := m.decide(asked, n)
	*r = *asked.WithContext(ctx) // a Key may have read the body, and put it back
	return n.decision, err
}

// passes tells whether r is let through uncounted.
func (m *Middleware) passes(r *http.Request) bool {
	if m.skip != nil && m.skip(r) {
		return true
	}
	if m.exempt == nil {
		return false
	}
	exempt, err := m.exempt(r)
	return exempt && err == nil
}

// blocks tells why r may not be decided at all.
func (m *Middleware) blocks(r *http.Request) error {
	if m.block == nil {
		return nil
	}
	blocked, err := m.block(r)
	if err == nil && blocked {
		err = ErrBlocked
	}
	return err
}

// decide fills n's decision. Until it returns, n has none to show to a Key.
func (m *Middleware) decide(r *http.Request, n *node) error {
	err := m.ask(r, n)
	n.decided = true
	return err
}

func (m *Middleware) ask(r *http.Request, n *node) error {
	count := len(m.rules)
	if m.ban != nil {
		count++
	}
	n.room(count)
	if err := m.blocks(r); err != nil {
		return err
	}
	d := &n.decision
	var noKey error
	charged := 0
	for i := range d.Charges {
		charge, err := m.charge(r, d, i)
		switch {
		case err == nil:
			d.Charges[i] = charge
			charged++
			m.warnings.count(i, charge.Key)
		case errors.Is(err, keyfunc.ErrSkip):
		case i < len(m.rules) && m.rules[i].Shadow: // left out too: it refuses nothing
			m.shadow.report(r.Context(), err)
		case !errors.Is(err, keyfunc.ErrNoKey):
			return err
		case noKey == nil: // as it is: joining allocates, and this may be a flood
			noKey = err
		default:
			noKey = errors.Join(noKey, err)
		}
	}
	if err := m.take(r.Context(), d, charged); err != nil {
		return err
	}
	n.conclude()
	switch {
	case d.Refused >= 0:
		return nil
	case noKey != nil:
		return noKey
	}
	d.Delay = m.turn(d)
	return nil
}

// charge is what rule i, or the ban after the last rule, asks of r.
func (m *Middleware) charge(r *http.Request, d *Decision, i int) (store.Charge, error) {
	if i == len(m.rules) {
		return m.strike(r, d)
	}
	return m.rules[i].charge(r)
}

// take charges those of d's charges that have a policy, as one group.
func (m *Middleware) take(ctx context.Context, d *Decision, charged int) error {
	switch charged {
	case 0:
		return nil
	case len(d.Charges):
		return m.store.Take(ctx, d.Charges, d.Results)
	}
	charges := make([]store.Charge, 0, charged)
	for _, c := range d.Charges {
		if c.Policy != nil {
			charges = append(charges, c)
		}
	}
	results := make([]algorithms.Result, charged)
	if err := m.store.Take(ctx, charges, results); err != nil {
		return err
	}
	for i := range d.Charges {
		if d.Charges[i].Policy != nil {
			d.Results[i], results = results[0], results[1:]
		}
	}
	return nil
}

// charge is what rule asks of r.
func (rule *Rule) charge(r *http.Request) (store.Charge, error) {
	key, err := rule.Key(r)
	if err != nil {
		return store.Charge{}, err
	}
	if key == "" {
		return store.Charge{}, keyfunc.ErrNoKey
	}
	c := store.Charge{Policy: rule.Policy, Key: keyfunc.Bound(key), Cost: 1}
	if rule.Cost != nil {
		if c.Cost = rule.Cost(r); c.Cost < 0 {
			return store.Charge{}, &FieldError{Field: "Cost of policy " + rule.Policy.Name(), Value: c.Cost, Reason: "must not be negative"}
		}
	}
	if rule.Shadow {
		c.Mode = store.Shadow
	}
	return c, nil
}
