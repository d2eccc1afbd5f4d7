package algorithms

import (
	"errors"
	"sort"
)

// SlidingLog lets Count units through in any Period, exactly: it remembers when
// it let each unit in, and a unit makes room again a Period later. In Redis the
// times are the scores of a sorted set.
//
// In a span that begins with one unit and ends just before a Period later there
// are never more than Count; with both ends counted it is Count × (⌊s / Period⌋ +
// 1) in any span s. A caller who asks without pause gets Count units each Period.
// A refusal is not remembered, and shows when enough of the oldest units leave.
//
// The price is the room: a number for each unit, of which there are at most
// Count, and so at most [MaxLog] a key. What has left goes as new units come, 64
// more of it each time than come in, so that no charge has much to clear away.
//
// A give-back takes out the oldest units that are not older than the charge was,
// and nothing once that is a Period ago. Limit.Burst must be left out.
type SlidingLog struct{}

// MaxLog is the largest Count of a [SlidingLog].
const MaxLog = 10_000

// logSpare is how many units that have left go with each charge, beside as many
// as come in. A store that keeps the log in its own form does the same, or it
// answers otherwise after the clock has stepped back.
const logSpare = 64

// Name is "sliding-log".
func (SlidingLog) Name() string { return "sliding-log" }

// Params compiles l: count, period, and how many that have left may go beside as
// many as come in; how much older than it was a charge may seem (µs).
func (SlidingLog) Params(l Limit) ([]int64, error) {
	err := checkWindow(l)
	if l.Count > MaxLog {
		err = errors.Join(err, &FieldError{"Limit.Count", l.Count, "must be at most 10000: a log keeps a number for each unit; SlidingCounter and GCRA do with two or three"})
	}
	if err != nil {
		return nil, err
	}
	return []int64{l.Count, l.Period.Microseconds(), logSpare, grace}, nil
}

// Decide makes one charge. The state is the times of the units, in ascending
// order.
func (SlidingLog) Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result) {
	count, period, spare, slack := p[0], p[1], p[2], p[3]
	log := s
	if n := len(s); n > 0 && s[n-1]-now > period {
		log = nil
	}
	gone, end := after(log, now-period), len(log)
	used := int64(end - gone) // what is in log[gone:end] counts
	r := Result{Limit: count, Remaining: max(0, count-used)}

	made, at, taken, back := false, end, int64(0), int64(0) // log[at-back:at] goes, then as many times of now come
	want := cost
	switch {
	case cost > count:
		r.Limited, r.RetryAfter = true, Never
	case cost > 0:
		if r.Limited = cost > r.Remaining; !r.Limited {
			made, at, taken = true, max(gone, after(log, now)), cost
		}
	case cost == 0:
		want = 1
		r.Limited = r.Remaining < 1
	case age < period:
		made = true
		oldest := max(gone, after(log, now-max(age, 0)-slack-1))
		back = min(givenBack(cost), int64(end-oldest))
		at = oldest + int(back)
	default:
		made = true
	}
	used += taken - back
	r.Remaining = max(0, count-used)
	// leaves is when the i-th unit leaves, of those that count after the charge.
	leaves := func(i int64) int64 {
		switch k := i + int64(gone); {
		case k < int64(at)-back:
			return log[k] + period - now
		case k < int64(at)-back+taken:
			return period
		default:
			return log[k+back-taken] + period - now
		}
	}
	if want > 0 && want <= count && want > r.Remaining {
		r.RetryAfter = micros(leaves(used + want - count - 1))
	}
	if used > 0 {
		r.ResetAfter = micros(leaves(used - 1))
	}
	switch {
	case !made:
		return append(dst, s...), r
	case used == 0:
		return dst, r
	case used > taken: // else nothing of the old log counts, and all of it goes
		first := min(gone, int(taken+back+spare))
		dst = append(dst, log[first:at-int(back)]...)
	}
	for range taken {
		dst = append(dst, now)
	}
	if used > taken {
		dst = append(dst, log[at:]...)
	}
	return dst, r
}

// after is the index of the first time in log that is after t.
func after(log State, t int64) int {
	return sort.Search(len(log), func(i int) bool { return log[i] > t })
}
