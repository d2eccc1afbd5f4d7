package keyfunc

import (
	"errors"
	"net/http"

	"github.com/weirgo/weir/algorithms"
)

// Match tells whether a request is meant. Its error is that of a [Func]: who is
// not known, for [ErrNoKey], is neither meant nor not.
type Match func(*http.Request) (bool, error)

// In matches the requests whose client, as t finds it, is in one of cidrs:
// ranges, "10.0.0.0/8", or single addresses, "192.0.2.1". IPv4-mapped IPv6 means
// the IPv4 in it. Thousands of ranges cost little more than one.
//
// The error of the Match wraps [ErrNoKey] for a request without a usable address.
//
// All mistakes come back at once, each an [algorithms.FieldError] with Field
// "cidrs[i]". No cidrs at all is a mistake too.
func In(t Trust, cidrs ...string) (Match, error) {
	if len(cidrs) == 0 {
		return nil, &algorithms.FieldError{Field: "cidrs", Value: cidrs, Reason: "must name at least one range or address; to match nobody, use no Match"}
	}
	set, errs := parseCIDRs("cidrs", cidrs, nil)
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return func(r *http.Request) (bool, error) {
		a, err := t.ClientIP(r)
		return err == nil && set.has(a), err
	}, nil
}
