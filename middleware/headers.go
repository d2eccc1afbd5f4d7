package middleware

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// The keys are in net/http's canonical form, so that no look-up changes them.
const (
	headerLimit     = "X-Ratelimit-Limit"
	headerRemaining = "X-Ratelimit-Remaining"
	headerReset     = "X-Ratelimit-Reset"
)

// show sets the headers of n's strictest result, unless a Middleware around
// this one has set stricter ones. They speak from the end of the time that the
// request was held.
func (n *node) show(h http.Header, held time.Duration) {
	n.shown = later(n.shown, held)
	if outer, ok := n.Context.Value(innermost{}).(*node); ok {
		if around := later(outer.shown, held); !stricter(n.shown, around) {
			n.shown = around
			if held == 0 {
				return // they are set
			}
		}
	}
	r := n.shown
	if r.Limit == 0 {
		return
	}
	// One string and one slice hold all three values.
	var room [3 * 20]byte
	text := strconv.AppendInt(room[:0], r.Limit, 10)
	limit := len(text)
	text = strconv.AppendInt(text, r.Remaining, 10)
	remaining := len(text)
	all := string(strconv.AppendInt(text, r.Cell()[4], 10))
	values := []string{all[:limit], all[limit:remaining], all[remaining:]}
	h[headerLimit] = values[0:1:1]
	h[headerRemaining] = values[1:2:2]
	h[headerReset] = values[2:3:3]
}

// setRefusal sets what a refusal has beside the limit: how long to wait, and
// that no cache may give this answer to somebody else (RFC 6585 §4).
func setRefusal(h http.Header, retryAfter time.Duration) {
	h.Set("Cache-Control", "no-store")
	if retryAfter == algorithms.Never {
		h.Del("Retry-After")
		return
	}
	h.Set("Retry-After", strconv.FormatInt(retrySeconds(retryAfter), 10))
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
