// Package keyfunc finds out, from an HTTP request, who or what is limited: the
// key that a rule counts by.
//
// Most keys are one of these, or several put together by [Join]:
//
//	keyfunc.IP(trust)                                             // the client's address
//	keyfunc.Header("X-User-ID")                                   // what something in front has authenticated
//	keyfunc.Join(keyfunc.Route, keyfunc.IP(trust))                // an address, for each route
//	keyfunc.First(keyfunc.Header("X-User-ID"), keyfunc.IP(trust)) // the user, or else the address
//
// A key must be something that the caller can't choose, or each new value buys
// a new budget. What each function here believes is in its comment.
//
// The functions bound the work of a request, not the length of a key: a header
// or a path can be as long as the server accepts.
package keyfunc

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
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

// Const gives every request the same key: one budget for everybody. Const("")
// always gives [ErrNoKey].
func Const(key string) Func {
	return func(*http.Request) (string, error) {
		if key == "" {
			return "", ErrNoKey
		}
		return key, nil
	}
}

// Header gives the value of the named request header as it stands: upper and
// lower case differ. Of several lines it is the first, which is the one that
// Header.Get gives the handler. "Host" is the request's Host, which net/http
// keeps apart from the headers.
//
// The error wraps [ErrNoKey] where the header is absent or blank, and always
// where name is empty.
//
// Anyone can write a header. Use it only behind something that authenticates
// the header or strips it from what came from outside; else a caller gets a new
// budget with each value, or spends somebody else's.
func Header(name string) Func {
	canonical := http.CanonicalHeaderKey(name) // here, or Get does it for each request
	missing := noKey("header " + name)
	return func(r *http.Request) (string, error) {
		var v string
		if canonical == "Host" {
			v = r.Host
		} else {
			v = r.Header.Get(canonical)
		}
		if strings.TrimSpace(v) == "" {
			return "", missing
		}
		return v, nil
	}
}

// PathValue gives the part of the path that the route's pattern calls name, as
// [http.Request.PathValue] has it: decoded, upper and lower case kept. It
// serves http.ServeMux, and chi and gin whose adapters set the path values.
//
// The error wraps [ErrNoKey] where the value is empty: the pattern has no such
// name, or the request has not been routed yet (see [Route]).
func PathValue(name string) Func {
	missing := noKey("path value " + name)
	return func(r *http.Request) (string, error) {
		if v := r.PathValue(name); v != "" {
			return v, nil
		}
		return "", missing
	}
}

// unmatched is the key of requests without a route. It can't be a pattern, as
// those have a slash.
const unmatched = "unmatched"

// Route is a [Func]: it gives the pattern of the request's route, such as
// "GET /orders/{id}", and never the path, of which a caller can invent any
// number. Its error is always nil.
//
// Where there is no pattern the key is "unmatched": those who scan for paths
// share one budget, and a middleware in the wrong place limits too much, which
// is seen, rather than nothing.
//
// http.ServeMux knows the pattern only inside: wrap the handlers, not the mux.
// Of a mux inside a mux it is the inner one's pattern, without what
// http.StripPrefix took off, so two inner muxes with equal patterns share keys.
// With chi and gin the adapters set it.
//
// The method counts only as far as the pattern says it: "/report" is one key
// for all methods, and as ServeMux serves HEAD by "GET /report" too, GET and
// HEAD share that key.
func Route(r *http.Request) (string, error) {
	if r.Pattern == "" {
		return unmatched, nil
	}
	return r.Pattern, nil
}
