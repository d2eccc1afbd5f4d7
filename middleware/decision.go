package middleware

import (
	"context"
	"math"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// Decision is what was asked of the store for a request, and its answers.
// Charges[i] and Results[i] belong to Config.Rules[i]; where a rule was left out
// they are zero. Do not change them.
type Decision struct {
	Charges []store.Charge
	Results []algorithms.Result
	Refused int // index of the strictest rule that refused the request, or −1
}

// FromContext is the Decision of the innermost Middleware that let the request
// of this context pass, or that refused it, in Config.Denied. Without one, as
// after Config.Skip, ok is false and the Decision is empty, with Refused −1.
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

// inlineRules is how many rules need no slices of their own.
const inlineRules = 4

// node is the context of a request that was decided. One allocation holds all
// that a request needs.
type node struct {
	context.Context
	by       *Middleware
	decision Decision
	shown    algorithms.Result // the strictest of this Middleware and those around it
	charges  [inlineRules]store.Charge
	results  [inlineRules]algorithms.Result
}

// Value finds the node by its Middleware, and the innermost node.
func (n *node) Value(key any) any {
	switch k := key.(type) {
	case innermost:
		return n
	case *Middleware:
		if k == n.by {
			return n
		}
	}
	return n.Context.Value(key)
}

// room makes n ready for a decision under so many rules.
func (n *node) room(rules int) {
	n.decision.Refused = -1
	if rules <= inlineRules {
		n.decision.Charges, n.decision.Results = n.charges[:rules:rules], n.results[:rules:rules]
	} else {
		n.decision.Charges, n.decision.Results = make([]store.Charge, rules), make([]algorithms.Result, rules)
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
