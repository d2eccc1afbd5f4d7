package middleware

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// refuse sets what the answer to a refusal has beside the limit: how long to wait,
// and that it is for this client only.
func (n *node) refuse(h http.Header) {
	values := []string{"no-store", ""} // one allocation for both
	uncached(h, values[0:1:1])
	n.set.headers.exposeTo(h)
	wait := n.wait()
	if wait == algorithms.Never {
		h.Del("Retry-After")
		return
	}
	if jitter := n.set.headers.jitter; jitter > 0 {
		wait += rand.N(jitter + 1)
	}
	values[1] = strconv.FormatInt(retrySeconds(wait), 10)
	h["Retry-After"] = values[1:2:2]
}

// fail sets what the answer to a request has that may not pass for another reason.
func (n *node) fail(h http.Header) {
	uncached(h, []string{"no-store"})
	n.set.headers.exposeTo(h) // of Retry-After, which it may have
}

// wait is how long a refused request is to wait: until the rule that refused it
// lets it in, and the Middlewares around this one do so again, which have charged
// it. What they may give back by its status is not waited for.
func (n *node) wait() time.Duration {
	wait := n.decision.Results[n.decision.Refused].RetryAfter
	if wait == algorithms.Never {
		return wait
	}
	for o := n.outer; o != nil; o = o.outer {
		for i := range o.set.rules {
			if rule := &o.set.rules[i]; !rule.Shadow && rule.Refund == nil {
				wait = max(wait, o.decision.Results[i].RetryAfter-n.since(o))
			}
		}
	}
	return wait
}

// retrySeconds is d in whole seconds (RFC 9110 §10.2.3), rounded up so that who
// waits that long is let in, and at least 1: 0 would read "now".
func retrySeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(s, 1)
}

// uncached keeps caches from giving this answer to somebody else (RFC 6585 §4),
// whatever an outer layer has said of the one it expected. Those of content
// delivery networks may go by headers of their own (RFC 9213).
func uncached(h http.Header, noStore []string) {
	h["Cache-Control"] = noStore
	h.Del("Cdn-Cache-Control")
	h.Del("Surrogate-Control")
}
