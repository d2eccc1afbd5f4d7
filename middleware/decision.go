package middleware

import (
	"context"
	"math"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/notice"
	"github.com/weirgo/weir/store"
)

// Decision is what was asked of the store for a request, and its answers.
// Charges[i] and Results[i] belong to Config.Rules[i]; where Config.Ban is set,
// one more of each at the end is the ban's. Where a rule or the ban was left out
// they are zero. Do not change them.
type Decision struct {
	Charges []store.Charge
	Results []algorithms.Result // at the time of the decision
	Refused int                 // index of the strictest rule that refused the request, len(Config.Rules) for the ban, or −1
	Delay   time.Duration       // how long a request that may pass is to be held, by rules with Pace; 0 for one that may not
}

// FromContext is the Decision of the innermost Middleware that let the request
// of this context pass, or that did not, in Config.Denied and Config.Failed.
// Without one, as after Config.Skip, ok is false and the Decision is empty, with
// Refused −1.
//
// With gin, it is in the context of c.Request.
func FromContext(ctx context.Context) (Decision, bool) {
	if n, ok := ctx.Value(innermost{}).(*node); ok {
		return n.decision, true
	}
	return Decision{Refused: -1}, false
}

// innermost is the context key of the last node.
type innermost struct{}

// inlineCharges is how many charges need no slices of their own: those of four
// rules and a ban.
const inlineCharges = 5

// node is the context of a request that was decided. One allocation holds all
// that a request needs.
type node struct {
	context.Context
	by       *Middleware
	decided  bool
	decision Decision
	shown    algorithms.Result // the strictest of this Middleware and those around it
	charges  [inlineCharges]store.Charge
	results  [inlineCharges]algorithms.Result
}

// Value finds the node by its Middleware, the innermost node that has a
// decision, and who takes notices.
func (n *node) Value(key any) any {
	switch k := key.(type) {
	case innermost:
		if n.decided {
			return n
		}
	case *Middleware:
		if k == n.by {
			return n
		}
	case notice.Key:
		return n.by.warnings.notice
	}
	return n.Context.Value(key)
}

// room makes n ready for a decision on so many charges.
func (n *node) room(charges int) {
	n.decision.Refused = -1
	if charges <= inlineCharges {
		n.decision.Charges, n.decision.Results = n.charges[:charges:charges], n.results[:charges:charges]
	} else {
		n.decision.Charges, n.decision.Results = make([]store.Charge, charges), make([]algorithms.Result, charges)
	}
}

// conclude finds the strictest results: of those that refuse, and of those to
// show. A ban shows only where it refuses.
func (n *node) conclude() {
	d := &n.decision
	for i := range d.Results {
		r := &d.Results[i]
		switch d.Charges[i].Mode {
		case store.Shadow:
			continue
		case store.Strike:
			if !bans(r, d.Refused >= 0) {
				continue
			}
		}
		if r.Limited && (d.Refused < 0 || stricter(*r, d.Results[d.Refused])) {
			d.Refused = i
		}
		if stricter(*r, n.shown) {
			n.shown = *r
		}
	}
}

// stricter tells whether a says more to a client than b: a refusal comes before
// a pass, then the longer wait, then the less that is left. A result that nobody
// decided says nothing.
func stricter(a, b algorithms.Result) bool {
	switch {
	case a.Limit == 0:
		return false
	case b.Limit == 0:
		return true
	case a.Limited != b.Limited:
		return a.Limited
	case a.RetryAfter != b.RetryAfter:
		return wait(a) > wait(b)
	}
	return a.Remaining < b.Remaining
}

func wait(r algorithms.Result) int64 {
	if r.RetryAfter == algorithms.Never {
		return math.MaxInt64
	}
	return int64(r.RetryAfter)
}
