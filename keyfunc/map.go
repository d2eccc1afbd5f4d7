package keyfunc

import (
	"errors"
	"net/http"
)

// Map gives the key of f as change makes it, so that several spellings of one
// thing are one key: the handler must use the same spelling, or a caller gets a
// budget for each that the handler holds to be the same. Package
// keyfunc/normalize has changes for texts such as names and e-mail addresses.
//
// change gives "" for a key that can't be used, and that is [ErrNoKey]. It is
// called by many requests at once. If f or change is nil, that is a mistake
// ([Validate]).
func Map(f Func, change func(string) string) Func {
	var errs []error
	if f == nil {
		errs = append(errs, Validate(wrong("Map: f", nil, "is nil")))
	} else if err := Validate(f); err != nil {
		errs = append(errs, err)
	}
	if change == nil {
		errs = append(errs, Validate(wrong("Map: change", nil, "is nil")))
	}
	if errs != nil {
		return mistake(errors.Join(errs...))
	}
	return func(r *http.Request) (string, error) {
		k, err := f.key(r)
		if err != nil {
			return "", err
		}
		if k = change(k); k == "" {
			return "", errUnusable
		}
		return k, nil
	}
}

var errUnusable = noKey("usable value")

// Optional is f, but leaves its rule out for a request without a key
// ([ErrSkip]), which is exempt from it then. Where leaving something out must not
// be a way around the limit, use [First] with a key that every request has. If f
// is nil, that is a mistake ([Validate]).
func Optional(f Func) Func {
	if f == nil {
		return wrong("Optional: f", nil, "is nil")
	}
	if err := Validate(f); err != nil {
		return mistake(err)
	}
	return func(r *http.Request) (string, error) {
		k, err := f.key(r)
		if errors.Is(err, ErrNoKey) {
			return "", ErrSkip
		}
		return k, err
	}
}
