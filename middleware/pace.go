package middleware

import (
	"context"
	"fmt"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// turn is how long a request that d lets in has to wait: until the latest of its
// turns under the rules with Pace.
func (s *settings) turn(d *Decision) time.Duration {
	var latest time.Duration
	for i := range s.rules {
		if c := &d.Charges[i]; s.rules[i].Pace && c.Policy != nil {
			// That there are turns was asked when m was made.
			turn, _ := c.Policy.Turn(c.Cost, d.Results[i])
			latest = max(latest, turn)
		}
	}
	return latest
}

// hold returns after delay, or once ctx is done, and says how long that was. A
// turn that comes when ctx is done already has come too late.
func hold(ctx context.Context, delay time.Duration) (time.Duration, error) {
	start := time.Now()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if err := ctx.Err(); err != nil {
		return time.Since(start), fmt.Errorf("weir: the request ended before its turn came: %w", err)
	}
	return time.Since(start), nil
}

// later is r as it reads some time later, if nobody charges the key meanwhile.
// What would have come free by then is left out: others may have taken it.
func later(r algorithms.Result, by time.Duration) algorithms.Result {
	r.ResetAfter = max(0, r.ResetAfter-by)
	if r.RetryAfter != algorithms.Never {
		r.RetryAfter = max(0, r.RetryAfter-by)
	}
	return r
}

// checkPace reports what keeps rule from holding requests.
func (rule *Rule) checkPace(s store.Store, bad func(value any, reason string)) {
	if !rule.Pace {
		return
	}
	if !isNil(s) && store.Resolution(s) > time.Millisecond {
		bad(true, fmt.Sprintf("needs a store that tells turns apart, and this one rounds times to %v; use redisstore or memstore", store.Resolution(s)))
	}
	if rule.Shadow {
		bad(true, "can't be set with Shadow, which holds nothing; leave one of them out")
	}
	if rule.Refund != nil {
		bad(true, "can't be set with Refund: those behind have their turns already, and what is given back would let others in between them; leave one of them out")
	}
	for _, p := range rule.policies() {
		if p == nil || p.Algorithm() == nil {
			continue // reported as such
		}
		if _, ok := p.Turn(0, algorithms.Result{}); !ok {
			bad(true, fmt.Sprintf("needs an algorithm that keeps a queue, and %s as it is set up keeps none; use LeakyBucket{}, without Stepped", p.Algorithm().Name()))
		}
	}
}
