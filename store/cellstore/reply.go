package cellstore

import (
	"strconv"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// reply is what CL.THROTTLE answers, in its order. Times are in seconds.
type reply struct {
	limited                        bool
	limit, remaining, retry, reset int64
}

// parse reads a reply. Some compatible servers and proxies give numbers as text.
func parse(v any) (reply, error) {
	values, ok := v.([]any)
	if !ok || len(values) != 5 {
		return reply{}, errReply
	}
	var n [5]int64
	for i, v := range values {
		switch v := v.(type) {
		case int64:
			n[i] = v
		case string:
			parsed, err := strconv.ParseInt(v, 10, 64)
			if err != nil {
				return reply{}, errReply
			}
			n[i] = parsed
		default:
			return reply{}, errReply
		}
	}
	r := reply{n[0] == 1, n[1], n[2], n[3], n[4]}
	if n[0] != 0 && n[0] != 1 || r.retry < -1 || r.retry > maxSeconds || r.reset < 0 || r.reset > maxSeconds {
		return reply{}, errReply
	}
	return r, nil
}

// maxSeconds is more than any limit takes to drain, and fits into a Duration.
const maxSeconds = 2 * longestDrain / int64(time.Second)

// result is what a reply says of the key, for whatever cost.
func (r reply) result(l limit) (algorithms.Result, error) {
	if r.limit != l.burst {
		return algorithms.Result{}, errReply
	}
	return algorithms.Result{
		Limit:      l.burst,
		Remaining:  max(0, min(r.remaining, l.burst)), // the module's can be above, where a unit is a few µs
		ResetAfter: time.Duration(r.reset) * time.Second,
	}, nil
}

// charge is the answer to a charge that fits into an empty bucket.
func (r reply) charge(l limit, cost int64) (algorithms.Result, error) {
	result, err := r.result(l)
	if err != nil {
		return result, err
	}
	switch {
	case !r.limited:
		result.Remaining = min(result.Remaining, l.burst-cost)
		if cost > result.Remaining {
			result.RetryAfter = r.until(l, cost)
		}
	case r.retry < 0: // never is for costs that were not sent
		return algorithms.Result{}, errReply
	default:
		// What refuses less than a millisecond early says 0.
		result.Limited, result.RetryAfter = true, max(time.Duration(r.retry)*time.Second, time.Millisecond)
		result.Remaining = min(result.Remaining, cost-1)
	}
	return result, nil
}

// look is the answer to a look, a cost that can never fit or a give-back, from
// the refusal of a quantity above the limit.
func (r reply) look(l limit, cost int64) (algorithms.Result, error) {
	result, err := r.result(l)
	if err != nil || !r.limited || r.retry != -1 {
		return algorithms.Result{}, errReply
	}
	switch {
	case cost > 0:
		result.Limited, result.RetryAfter = true, algorithms.Never
	case cost == 0 && result.Remaining == 0:
		result.Limited, result.RetryAfter = true, r.until(l, 1)
	}
	return result, nil
}

// until is how long until a cost fits into what is left when the bucket has
// drained so far. The module does not say; it is as exact as the reset, from which
// it follows.
func (r reply) until(l limit, cost int64) time.Duration {
	room := (l.burst - cost) * l.interval / int64(time.Microsecond)
	return max(time.Duration(r.reset)*time.Second-time.Duration(room)*time.Microsecond, time.Millisecond)
}
