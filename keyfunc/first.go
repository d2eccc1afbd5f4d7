package keyfunc

import (
	"errors"
	"net/http"
	"strconv"
)

// First gives the key of the first part that has one: the user where there is
// one, or else the address. A part has none if its error is [ErrNoKey] or
// wraps it, or if its key is empty; any other error, [ErrSkip] too, is
// returned as it is. If no part has a key the error is ErrNoKey.
//
// The key begins with the part's place, counted from 0: "1:203.0.113.7". So an
// account whose id looks like an address doesn't share that address's budget.
// To put a part in front of others gives those new keys.
//
// A caller who can choose which part answers has a budget in each: put only
// what is authenticated in front of something weaker.
//
// A part that is nil, or no parts at all, is a mistake ([Validate]).
func First(parts ...Func) Func {
	if err := checkParts("First", parts...); err != nil {
		return mistake(err)
	}
	parts = append([]Func(nil), parts...) // the caller may reuse its slice
	places := make([]string, len(parts))
	for i := range places {
		places[i] = strconv.Itoa(i) + ":"
	}
	return func(r *http.Request) (string, error) {
		for i, part := range parts {
			k, err := part.key(r)
			if err == nil {
				return places[i] + k, nil
			}
			if !errors.Is(err, ErrNoKey) {
				return "", err
			}
		}
		return "", ErrNoKey
	}
}
