package keyfunc

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/weirgo/weir/algorithms"
)

// Validate says what f was made of that can't be, such as a part that is nil or
// a secret that is too short: it joins an [algorithms.FieldError] for each
// mistake. Such a Func gives no key to any request, so middleware.New asks this
// of every Func that it is given. The functions of this package pass on the
// mistakes of their parts; those inside a function of one's own are found out by
// its requests only.
func Validate(f Func) error {
	if f == nil {
		return &algorithms.FieldError{Field: "keyfunc.Func", Reason: "is nil"}
	}
	if !isMistake(f) {
		return nil
	}
	_, err := f(nil)
	return err
}

// mistake is a Func that always gives err. It is how a constructor without an
// error of its own reports one to [Validate], through all that is made of it.
//
// Validate knows such a Func by its code, which is why there may be no second
// copy of it.
//
//go:noinline
func mistake(err error) Func {
	return func(*http.Request) (string, error) { return "", err }
}

var mistakeCode = reflect.ValueOf(mistake(nil)).Pointer()

func isMistake(f Func) bool { return reflect.ValueOf(f).Pointer() == mistakeCode }

// wrong is a mistake in one argument of a constructor.
func wrong(field string, value any, reason string) Func {
	return mistake(&algorithms.FieldError{Field: "keyfunc." + field, Value: value, Reason: reason})
}

// checkParts joins what is wrong with the parts of name: that there are none,
// one that is nil, which must not be left out in silence, as the rule would
// count by less than its author wrote, or one made by mistake.
func checkParts(name string, parts ...Func) error {
	var errs []error
	if len(parts) == 0 {
		errs = append(errs, &algorithms.FieldError{
			Field: "keyfunc." + name + ": parts", Value: parts, Reason: "must have at least one part",
		})
	}
	for i, part := range parts {
		if part == nil {
			errs = append(errs, &algorithms.FieldError{
				Field: fmt.Sprintf("keyfunc.%s: parts[%d]", name, i), Reason: "is nil",
			})
		} else if err := Validate(part); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
