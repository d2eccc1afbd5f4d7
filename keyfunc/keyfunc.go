// Package keyfunc finds out, from an HTTP request, who or what is limited: the
// key that a rule counts by.
//
// Most keys are one of these, or several put together by [Join]:
//
//	keyfunc.IP(trust)                                              // the client's address
//	keyfunc.Context(userKey{})                                     // whom an authentication layer has found
//	keyfunc.JSON("phone")                                          // what is asked for
//	keyfunc.Join(keyfunc.Route, keyfunc.IP(trust))                 // an address, for each route
//	keyfunc.First(keyfunc.Context(userKey{}), keyfunc.IP(trust))   // the user, or else the address
//	keyfunc.HMAC(secret, keyfunc.Map(keyfunc.Form("email"), fold)) // one spelling, and hidden
//
// Who asks must be limited by something that the caller can't choose, or each
// new value buys a new budget. What each function here believes is in its
// comment.
//
// A constructor that is called wrongly gives a Func that says so to [Validate],
// which middleware.New asks.
package keyfunc

import (
	"errors"
	"fmt"
	"net/http"
)

// Func gives the key that identifies who or what is limited. Requests with
// equal keys share one budget.
//
// The error is [ErrNoKey], or wraps it, where the request lacks what the rule
// counts by, and [ErrSkip] where the rule doesn't apply to the request. Any
// other error is a failure to find out. An empty key without an error counts
// as ErrNoKey: empty is not a key, or all callers without one would share a
// budget.
//
// A Func is called by many requests at once and must be safe for that. Its
// errors must not hold the value they are about: it can be personal data, and
// errors are logged.
type Func func(*http.Request) (string, error)

// ErrNoKey says that the request lacks what the rule counts by. The middleware
// answers 400; the other rules are charged all the same, so that leaving
// something out is no way to ask for free.
//
// An error that wraps it says what is missing. Test with [errors.Is].
var ErrNoKey = errors.New("weir: the request has no key")

// ErrSkip leaves the rule out for this request, which the other rules still
// decide. No function of this package gives it by itself.
var ErrSkip = errors.New("weir: the rule is left out for this request")

// noKey is ErrNoKey with what is missing. It is made when the Func is, as a
// flood of such requests must not cost an allocation each.
func noKey(missing string) error { return fmt.Errorf("%w: %s", ErrNoKey, missing) }

// key calls f and holds it to its contract: no key is an error.
func (f Func) key(r *http.Request) (string, error) {
	k, err := f(r)
	if err != nil {
		return "", err
	}
	if k == "" {
		return "", ErrNoKey
	}
	return k, nil
}

// Const gives every request the same key: one budget for everybody. An empty
// key is a mistake ([Validate]).
//
// The middleware knows such a Func by its code, as it does not warn where that
// has one key only; so there may be no second copy of it.
//
//go:noinline
func Const(key string) Func {
	if key == "" {
		return wrong("Const: key", key, "must not be empty")
	}
	return func(*http.Request) (string, error) { return key, nil }
}
