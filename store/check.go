package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir/algorithms"
)

// ErrDuplicate is returned for a group that charges one state twice: which of
// the two should decide could not be said.
var ErrDuplicate = errors.New("weir: the same policy and key twice in one group")

// Check is what every store asks before it decides: sentences 11, 12 and 14 of
// [Store]. It returns ctx's error, [ErrDuplicate] or all mistakes as
// *[algorithms.FieldError], joined.
func Check(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(results) != len(charges) {
		return &algorithms.FieldError{Field: "results", Value: len(results), Reason: "must be as many as the charges"}
	}
	var errs []error
	for i := range charges {
		if !valid(&charges[i]) {
			errs = append(errs, explain(i, &charges[i])...)
		}
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	for i := range charges {
		for j := range i {
			if charges[i].Key == charges[j].Key && charges[i].Policy.ID() == charges[j].Policy.ID() {
				return ErrDuplicate
			}
		}
	}
	return nil
}

func valid(c *Charge) bool {
	return c.Policy != nil && c.Policy.Algorithm() != nil && c.Key != "" && c.Age >= 0 && c.Mode <= Forget &&
		(c.Mode != Strike || c.Cost >= 0) && (c.Mode != Forget || c.Cost == 0 && c.Age == 0)
}

func explain(i int, c *Charge) (errs []error) {
	bad := func(wrong bool, field string, value any, reason string) {
		if wrong {
			errs = append(errs, &algorithms.FieldError{Field: fmt.Sprintf("charges[%d].%s", i, field), Value: value, Reason: reason})
		}
	}
	bad(c.Policy == nil, "Policy", nil, "is missing")
	bad(c.Policy != nil && c.Policy.Algorithm() == nil, "Policy", "", "was not made by algorithms.NewPolicy")
	bad(c.Key == "", "Key", "", "must not be empty")
	bad(c.Age < 0, "Age", c.Age, "must not be negative")
	bad(c.Mode > Forget, "Mode", uint8(c.Mode), "must be Enforce, Shadow, Strike or Forget")
	bad(c.Mode == Strike && c.Cost < 0, "Cost", c.Cost, "must not be negative in Strike mode")
	bad(c.Mode == Forget && c.Cost != 0, "Cost", c.Cost, "must be 0 in Forget mode")
	bad(c.Mode == Forget && c.Age > 0, "Age", c.Age, "must be 0 in Forget mode")
	return errs
}
