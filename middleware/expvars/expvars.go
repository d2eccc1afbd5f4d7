// Package expvars counts what a middleware decides, for [expvar].
//
// It is a package of its own since expvar puts a handler at /debug/vars of
// http.DefaultServeMux in every program that imports it.
package expvars

import (
	"context"
	"expvar"
	"sync"

	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
)

// New is an observer for middleware.Config.Observe that counts in m, which
// [expvar.NewMap] makes and publishes. It is safe for concurrent use, and several
// middlewares may share m, with counts that add up.
//
// m gets a number for each outcome: "allowed", "refused", "banned", "blocked",
// "no_key", "failed", "exempted", "bypassed"; "store_calls" and "store_us", the
// microseconds they took together; and in "policies" a map for each policy with
// "asked", "limited" (an enforced rule or the ban would not have it),
// "would_limit" (nor would a Shadow rule) and "near" (a tenth or less is left).
// Keys are never in it.
func New(m *expvar.Map) func(context.Context, middleware.Event) {
	policies := of(m, "policies")
	return func(_ context.Context, e middleware.Event) {
		m.Add(e.Outcome.String(), 1)
		if e.Latency > 0 {
			m.Add("store_calls", 1)
			m.Add("store_us", e.Latency.Microseconds())
		}
		for rule := range e.Rules() {
			p := of(policies, rule.Policy)
			p.Add("asked", 1)
			switch {
			case rule.Near:
				p.Add("near", 1)
			case !rule.Result.Limited:
			case rule.Mode == store.Shadow:
				p.Add("would_limit", 1)
			default:
				p.Add("limited", 1)
			}
		}
	}
}

// making keeps two from making one map, of which the counts in the first would
// be lost.
var making sync.Mutex

// of is the map called name in m.
func of(m *expvar.Map, name string) *expvar.Map {
	if p, ok := m.Get(name).(*expvar.Map); ok {
		return p
	}
	making.Lock()
	defer making.Unlock()
	p, ok := m.Get(name).(*expvar.Map)
	if !ok {
		p = new(expvar.Map)
		m.Set(name, p)
	}
	return p
}
