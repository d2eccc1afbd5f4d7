package algorithms

import (
	_ "embed"
	"errors"
	"time"
)

// Ban keeps out those who go on being refused: after Strikes refusals Within a
// time, everything is refused For a time. What counts as a refusal is the
// caller's to say: it is a charge in Strike mode, see package store, that looks
// whether the key is banned and is charged only when something else refuses.
//
// The time Within opens with a key's first strike. The strike that is the last
// one begins the ban. Refusals during a ban do not make it longer, and after it
// the key is as good as new. A give-back takes strikes off, and lifts the ban of
// those that were too many by it; in any span s a key collects at most Strikes ×
// (⌈s / min(Within, For)⌉ + 1).
//
// Its numbers are its own, so its policy has no other Limit:
//
//	ban, err := algorithms.Ban{Strikes: 20, Within: time.Minute, For: time.Hour}.Policy("ban")
type Ban struct {
	Strikes int64         // refusals that begin a ban; at least 1
	Within  time.Duration // a positive, whole number of microseconds
	For     time.Duration // likewise
}

// Policy is a policy of this ban.
func (b Ban) Policy(name string) (*Policy, error) { return NewPolicy(name, b, b.limit()) }

func (b Ban) limit() Limit { return Limit{Count: b.Strikes, Period: b.Within} }

// Name is "ban".
func (Ban) Name() string { return "ban" }

// ban's params.
const (
	banStrikes = iota
	banWithin  // µs
	banFor     // µs
)

// Params compiles b. l is what Policy gives: Strikes each Within.
func (b Ban) Params(l Limit) ([]int64, error) {
	var errs []error
	bad := func(field string, value any, reason string) {
		errs = append(errs, &FieldError{"Ban." + field, value, reason})
	}
	switch {
	case b.Strikes < 1:
		bad("Strikes", b.Strikes, "must be at least 1")
	case b.Strikes > maxInt:
		bad("Strikes", b.Strikes, "must be at most 2^53")
	}
	for _, d := range [...]struct {
		field string
		value time.Duration
	}{{"Within", b.Within}, {"For", b.For}} {
		switch {
		case d.value <= 0:
			bad(d.field, d.value, "must be positive")
		case d.value%time.Microsecond != 0:
			bad(d.field, d.value, "must be a whole number of microseconds; a bare number counts nanoseconds")
		case d.value.Microseconds() > maxPeriod:
			bad(d.field, d.value, "must be at most 71 years")
		}
	}
	if l != b.limit() {
		errs = append(errs, &FieldError{"Limit", l.String(), "is not the ban's own; make the policy with Ban.Policy"})
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return []int64{b.Strikes, b.Within.Microseconds(), b.For.Microseconds()}, nil
}

// Decide makes one charge. The state is {at, strikes, ban}: the first of so many
// strikes came at the time at; a ban that has begun ends so many µs later, else
// ban is 0.
func (Ban) Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	strikes := p[banStrikes]
	at, used, ban := banLoad(s, now, p)
	r := Result{Limit: strikes}
	next := used
	switch {
	case cost > strikes:
		r.Limited, r.RetryAfter = true, Never
	case cost > 0:
		if r.Limited = cost > strikes-used; !r.Limited {
			if next = used + cost; next == strikes {
				ban = max(now-at, 0) + p[banFor]
			}
		}
	case cost == 0:
		r.Limited = used >= strikes
	case min(age, maxInt) <= max(now-at, 0)+min(grace, p[banWithin]/2):
		next -= min(used, givenBack(cost))
		if next < used && ban > 0 {
			ban = 0
			if now-at >= p[banWithin] {
				next = 0
			}
		}
	}
	r.Remaining = strikes - next
	left := at - now + p[banWithin]
	if ban > 0 {
		left = at - now + ban
	}
	if next > 0 {
		r.ResetAfter = micros(left)
	}
	if max(cost, 1) > r.Remaining && cost >= 0 && cost <= strikes {
		r.RetryAfter = micros(left)
	}
	switch {
	case r.Limited || cost == 0:
		return append(dst, s...), r
	case next == 0:
		return dst, r
	}
	return append(dst, at, next, ban), r
}

// banLoad is s as it counts now. A ban that has begun ends as it was meant to,
// whatever the limit is now.
func banLoad(s State, now int64, p []int64) (at, strikes, ban int64) {
	if len(s) != 3 || s[1] < 1 || s[2] < 0 || s[0]-now > max(p[banWithin], p[banFor]) {
		return now, 0, 0
	}
	if ban = s[2]; ban > 0 {
		if ban > now-s[0] {
			return s[0], p[banStrikes], ban
		}
	} else if p[banWithin] > now-s[0] {
		return s[0], min(s[1], p[banStrikes]), 0
	}
	return now, 0, 0
}

// Lua is the twin of Decide.
func (Ban) Lua() string { return banLua }

//go:embed ban.lua
var banLua string
