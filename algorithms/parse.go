package algorithms

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// String is l as [ParseLimit] reads it: "30/1m", "30/1m burst 15".
func (l Limit) String() string {
	s := strconv.FormatInt(l.Count, 10) + "/" + formatPeriod(l.Period)
	switch l.Burst {
	case 0:
		return s
	case burstZero:
		return s + " burst 0"
	}
	return s + " burst " + strconv.FormatInt(l.Burst, 10)
}

// formatPeriod is d in days where it is a number of them, and without the zero
// parts that [time.Duration.String] adds.
func formatPeriod(d time.Duration) string {
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// ParseLimit reads "COUNT/PERIOD" or "COUNT/PERIOD burst N": "5/s", "30/1m",
// "1000000/24h burst 1000", "10/30d". The period is in the syntax of
// [time.ParseDuration], or a whole number of days ("30d"); a bare unit means one
// of it. It accepts what [Limit.String] writes and gives the same Limit back.
//
// The error is one or more *[FieldError], joined. The Limit it returns is valid
// on its own; an algorithm may still refuse it.
func ParseLimit(s string) (Limit, error) {
	fail := func(reason string) (Limit, error) {
		return Limit{}, &FieldError{"Limit", s, reason}
	}
	fields := strings.Fields(s)
	if len(fields) != 1 && (len(fields) != 3 || fields[1] != "burst") {
		return fail(`want "COUNT/PERIOD" or "COUNT/PERIOD burst N", such as "30/1m burst 15"`)
	}
	count, period, ok := strings.Cut(fields[0], "/")
	if !ok {
		return fail(`want a slash between count and period, such as "30/1m"`)
	}
	var l Limit
	var err error
	if l.Count, err = parseCount(count); err != nil {
		return fail("count: " + err.Error())
	}
	if l.Period, err = parsePeriod(period); err != nil {
		return fail("period: " + err.Error())
	}
	if len(fields) == 3 {
		n, err := parseCount(fields[2])
		if err != nil {
			return fail("burst: " + err.Error())
		}
		l = l.WithBurst(n)
	}
	if err := l.check(); err != nil {
		return Limit{}, err
	}
	return l, nil
}

// ParseLimits reads several limits that hold together, separated by semicolons:
// "10/s; 100/h burst 20". Each is in the syntax of [ParseLimit]; white space
// around it does not matter. It accepts what [Limit.String] writes, joined by
// "; ", and gives the same limits back, in their order.
//
// The error is one or more *[FieldError], joined: all mistakes in all limits,
// with the position in Field ("Limits[1]", from 0) and that limit's text in
// Value. No limit at all, an empty one and the same one twice are mistakes.
//
// Each needs a policy of its own name. Make that from the period and not from the
// place in the text, so that it goes on counting where another order is written:
//
//	name := fmt.Sprintf("posts-%gs", l.Period.Seconds())
func ParseLimits(s string) ([]Limit, error) {
	var limits []Limit
	var errs []error
	first := map[Limit]int{} // where each limit stands
	for i, text := range strings.Split(s, ";") {
		text = strings.TrimSpace(text)
		bad := func(reason string) {
			errs = append(errs, &FieldError{fmt.Sprintf("Limits[%d]", i), text, reason})
		}
		if text == "" {
			bad("is empty; semicolons stand between limits only")
			continue
		}
		l, err := ParseLimit(text)
		for _, reason := range reasons(err) {
			bad(reason)
		}
		if err != nil {
			continue
		}
		if j, ok := first[l]; ok {
			bad(fmt.Sprintf("is the same as Limits[%d] and limits nothing more", j))
			continue
		}
		first[l] = i
		limits = append(limits, l)
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return limits, nil
}

// reasons are those of all mistakes in one limit, with the part of it that is
// wrong.
func reasons(err error) (all []string) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, reasons(e)...)
		}
		return all
	}
	if mistake, ok := err.(*FieldError); ok {
		part, ok := strings.CutPrefix(mistake.Field, "Limit.")
		if !ok {
			return []string{mistake.Reason}
		}
		return []string{strings.ToLower(part) + ": " + mistake.Reason}
	}
	return nil
}

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%q is out of range", s)
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}

const day = 24 * time.Hour

func parsePeriod(s string) (time.Duration, error) {
	written := s
	if s != "" && (s[0] < '0' || s[0] > '9') && s[0] != '+' && s[0] != '-' && s[0] != '.' {
		s = "1" + s // a bare unit
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		if err != nil || n > math.MaxInt64/int64(day) || n < 0 {
			return 0, fmt.Errorf("%q is not a whole number of days up to 106751", s)
		}
		return time.Duration(n) * day, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf(`%q is not a duration such as "1m", "1h30m" or "7d"`, written)
	}
	return d, nil
}
