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

	at   time.Time // before the store was asked
	node *node     // nil where nothing was decided
}

// RefusedBy is the name of the policy that refused the request: that of the
// strictest rule that did, or the ban's. It is "" where none did.
func (d Decision) RefusedBy() string {
	if d.Refused < 0 || d.Refused >= len(d.Charges) || d.Charges[d.Refused].Policy == nil {
		return ""
	}
	return d.Charges[d.Refused].Policy.Name()
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
	set      *settings
	decided  bool
	asked    bool // the store was
	charged  bool // and it answered
	decision Decision
	latency  time.Duration // of the store, where somebody observes
	back     returned      // what was given back
	charges  [inlineCharges]store.Charge
	results  [inlineCharges]algorithms.Result

	// For the headers, and those of nodes inside this one:
	strictest algorithms.Result // of those to show; Limit is 0 where there is none
	held      time.Duration     // how long the request was
	outer     *node             // of the next Middleware around this one; nil until show
	told      *node             // whose strictest result is in the headers of XRateLimit; nil where none is
}

func (m *Middleware) node(ctx context.Context) *node {
	n := &node{Context: ctx, by: m, set: m.current.Load()}
	n.decision.node = n
	return n
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
		return n.set.warnings.notice
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

// passes tells whether the request may go on, whose decision ended with err. What
// fails can't keep out who is under Shadow rules only, of which the log knows.
func (n *node) passes(err error) bool {
	if err == nil {
		return n.decision.Refused < 0
	}
	if n.set.shadow {
		return true
	}
	if !n.asked || n.set.ban != nil {
		return false
	}
	for _, rule := range n.set.rules {
		if !rule.Shadow {
			return false
		}
	}
	return true
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
		if stricter(*r, n.strictest) {
			n.strictest = *r
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
