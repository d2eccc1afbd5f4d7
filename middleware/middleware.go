// Package middleware limits net/http handlers: it finds the keys of a request,
// asks a store, and answers 429 or lets the request pass, with headers that say
// what is left.
//
// [Middleware.Check] decides, [Middleware.Allow] decides and writes,
// [Middleware.Handler] wraps; the adapters for routers use the second, and
// [Middleware.Settle] when the answer is written.
package middleware

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"
)

// Middleware applies the rules of its [Config] to requests. It is safe for
// concurrent use. A nil Middleware, which is what New returns with an error,
// answers every request with 500: a limit that could not be made is no open
// door.
type Middleware struct {
	current  atomic.Pointer[settings]
	bypassed atomic.Bool
}

var errNil = errors.New("weir: the Middleware is nil: New returned an error")

// ErrBlocked is why a request that Config.Block matches may not pass.
var ErrBlocked = errors.New("weir: the request is blocked")

// Handler limits next. Requests that are refused do not reach it. The
// ResponseWriter is handed on as it is, unless a rule has Refund. If next is nil,
// those that may pass are answered with 500.
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
		limited, ok := m.Allow(w, r)
		switch {
		case !ok:
		case limited != r && m.toSettle(limited) != nil:
			m.serve(next, w, limited)
		default:
			next.ServeHTTP(w, limited)
		}
	})
}

// Allow decides r and sets the headers of the answer. If r may pass, it returns
// the request to go on with, whose context carries the Decision for
// [FromContext]; if not, it has written the answer. It returns when the turn of
// the request has come, where a rule has Pace, or its context is done.
//
// Where rules have Refund, [Middleware.Settle] must be called when the request is
// served.
func (m *Middleware) Allow(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	if m == nil {
		problem{Status: http.StatusInternalServerError}.write(w, r)
		return r, false
	}
	ctx := r.Context()
	if ctx.Value(m) != nil || m.passes(r) {
		return r, true
	}
	n := m.node(ctx)
	r = r.WithContext(n) // for the keys, which it tells whom to give notice to
	err := n.set.decide(r, n)
	if err != nil {
		n.set.log.report(ctx, err)
	}
	passes := n.passes(err)
	n.set.tell(ctx, n, err, passes)
	var held time.Duration
	if n.decision.Delay > 0 { // and so err is nil
		held, err = hold(ctx, n.decision.Delay)
		passes = err == nil
	}
	n.show(w.Header(), held)
	switch {
	case passes:
		return r, true
	case err != nil:
		n.fail(w.Header())
		n.set.failed(w, r, err)
	default:
		n.refuse(w.Header())
		n.set.denied(w, r, n.decision)
	}
	return r, false
}

// Check decides r without writing anything. Unlike Allow it counts the request
// whenever it is called, and does not hold it: Decision.Delay is the caller's to
// wait for.
//
// The error is [keyfunc.ErrNoKey] where a rule or the ban found no key and no
// other refused (the rules with a key were charged), [ErrBlocked], the store's
// error, or that of a Key, a Cost, a PolicyOf, BanKey or Block (nothing was
// charged). What is wrong with a Shadow rule goes to the log, and where all rules
// are that, so does all else.
func (m *Middleware) Check(r *http.Request) (Decision, error) {
	if m == nil {
		return Decision{Refused: -1}, errNil
	}
	if m.passes(r) {
		return Decision{Refused: -1}, nil
	}
	ctx := r.Context()
	n := m.node(ctx)
	asked := r.WithContext(n)
	err := n.set.decide(asked, n)
	*r = *asked.WithContext(ctx) // a Key may have read the body, and put it back
	passes := n.passes(err)
	n.set.tell(ctx, n, err, passes)
	if passes && err != nil {
		n.set.log.report(ctx, err)
		err = nil
	}
	return n.decision, err
}

// passes tells whether r is let through uncounted.
func (m *Middleware) passes(r *http.Request) bool {
	s := m.current.Load()
	outcome := Exempted
	if m.bypassed.Load() {
		outcome = Bypassed
	} else if !s.exempts(r) {
		return false
	}
	if s.observe != nil {
		s.observe(r.Context(), Event{Outcome: outcome, Passed: true})
	}
	return true
}

// exempts tells whether r is none of the rules' business.
func (s *settings) exempts(r *http.Request) bool {
	if s.skip != nil && s.skip(r) || s.flight && isPreflight(r) {
		return true
	}
	if s.exempt == nil {
		return false
	}
	exempt, err := s.exempt(r)
	return exempt && err == nil
}

// isPreflight tells whether r is a CORS preflight (Fetch Standard §3.3.2).
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
