package middleware

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// show sets the headers that tell of limits. They speak from the end of the time
// that the request was held.
func (n *node) show(h http.Header, held time.Duration) {
	hs := &n.set.headers
	n.outer, _ = n.Context.Value(innermost{}).(*node)
	if n.held = held; held > 0 {
		n.showAgain(h, n.outer)
	}
	if hs.dialect == 0 || hs.when == OnRefusal && n.decision.Refused < 0 {
		return
	}
	hs.exposeTo(h)
	if hs.dialect&Draft11 != 0 {
		n.showItems(h)
	}
	if hs.dialect&XRateLimit != 0 {
		n.showStrictest(h)
	}
}

// showStrictest sets the headers of XRateLimit to the strictest result of this
// Middleware and of those around it that use the same names.
func (n *node) showStrictest(h http.Header) {
	n.told = n
	for o := n.outer; o != nil; o = o.outer {
		if o.told != nil && o.told.set.headers.names == n.set.headers.names {
			if !stricter(later(n.strictest, n.held), later(o.told.strictest, n.since(o.told))) {
				n.told = o.told
			}
			break // it has looked at those around it
		}
	}
	switch {
	case n.told.strictest.Limit == 0: // nobody decided
		n.told = nil
	case n.told == n || h[n.set.headers.names[0]] == nil: // else they are set, unless this is the header of another answer
		n.told.set.headers.set(h, n.told, n.since(n.told))
	}
}

// showAgain brings up to date what o and those around it have said of resets,
// after n was held.
func (n *node) showAgain(h http.Header, o *node) {
	if o == nil {
		return
	}
	n.showAgain(h, o.outer) // first: where two have the same names, the inner one knows the strictest
	if o.told != nil {
		o.told.set.headers.set(h, o.told, n.since(o.told))
	}
}

// since is how long the request was held between the decision of o, which is n or
// around it, and the end of n's.
func (n *node) since(o *node) time.Duration {
	held := n.held
	for n != o {
		n = n.outer
		held += n.held
	}
	return held
}

// set sets the headers of XRateLimit to what n decided so long ago.
func (hs *headers) set(h http.Header, n *node, ago time.Duration) {
	// One string and one slice hold all three values.
	var room [3 * 20]byte
	r := &n.strictest
	text := strconv.AppendInt(room[:0], r.Limit, 10)
	limit := len(text)
	text = strconv.AppendInt(text, r.Remaining, 10)
	remaining := len(text)
	switch hs.reset {
	case UnixSeconds:
		text = strconv.AppendInt(text, resetAt(n.decision.at, r.ResetAfter).Unix(), 10)
	case RFC3339:
		text = resetAt(n.decision.at, r.ResetAfter).AppendFormat(text, time.RFC3339)
	default:
		text = strconv.AppendInt(text, later(*r, ago).Cell()[4], 10)
	}
	all := string(text)
	values := []string{all[:limit], all[limit:remaining], all[remaining:]}
	h[hs.names[0]] = values[0:1:1]
	h[hs.names[1]] = values[1:2:2]
	h[hs.names[2]] = values[2:3:3]
}

// behind is how far the store's clock may be behind this one's without a reset that
// is told to be a second late, now and then or always.
const behind = 10 * time.Millisecond

// resetAt is the whole second by which after has passed since at, the time before
// the store was asked. It has answered a little later: a reset that is at a whole
// second in truth is rounded up to it again. A reset a moment after one counts as
// at it, or, of stores with a clock of their own, it would be the one or the other.
func resetAt(at time.Time, after time.Duration) time.Time {
	return at.Add(after + time.Second - behind).UTC().Truncate(time.Second)
}

// exposeTo lets scripts of other origins read the headers.
func (hs *headers) exposeTo(h http.Header) {
	const name = "Access-Control-Expose-Headers"
	if hs.expose != "" && !slices.Contains(h[name], hs.expose) {
		add(h, name, []string{hs.expose})
	}
}

// add adds values to those of a name in canonical form. It leaves alone the slice
// of these, which others may share.
func add(h http.Header, name string, values []string) {
	if there := h[name]; len(there) > 0 {
		values = append(slices.Clip(there), values...)
	}
	h[name] = values
}
