package algorithms

import "errors"

// maxPeriod is the longest window, in µs: 71 years. The sums and the products of
// times that windows make stay exact up to it.
const maxPeriod = 1 << 51

// grace is how much older than a window or a step, in µs, what is given back to it
// may seem. The caller measures an age with a round trip in it, so that the charge
// that opened a window can't be told from one just before.
const grace = 10_000

// checkWindow is what all windows ask of a Limit.
func checkWindow(l Limit) error {
	errs := []error{l.check()}
	if l.Burst > 0 {
		errs = append(errs, &FieldError{"Limit.Burst", l.Burst, "must be left out: a window lets Count through at once, no more and no less"})
	}
	if l.Period.Microseconds() > maxPeriod {
		errs = append(errs, &FieldError{"Limit.Period", l.Period, "must be at most 71 years"})
	}
	return errors.Join(errs...)
}

// givenBack is how many units a charge of negative cost gives back.
func givenBack(cost int64) int64 { return -max(cost, -maxInt) }
