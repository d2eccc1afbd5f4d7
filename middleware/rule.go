package middleware

import (
	"net/http"
	"slices"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// Rule is a Policy and how to find the key and the cost in a request.
type Rule struct {
	// Policy is how much is allowed and how it is counted. Each rule has one with
	// a name of its own, or PolicyOf. Middlewares that share a store share the
	// state of policies with the same name.
	Policy *algorithms.Policy

	// PolicyOf chooses a policy for the request, by its plan or tenant, out of
	// Policies; another one is a failure, and nothing is charged. Nil leaves the
	// rule out, before its Key is asked: this is how "unlimited" is said. Policies
	// with different names count apart; who changes from one to another begins anew.
	PolicyOf func(*http.Request) *algorithms.Policy

	// Policies are all that PolicyOf may return. Each has a name of its own.
	Policies []*algorithms.Policy

	// Key identifies what is limited. A request it finds no key in
	// ([keyfunc.ErrNoKey]) is answered with 400 after the other rules were
	// charged; for [keyfunc.ErrSkip] the rule is left out; any other error is a
	// failure. It is called once for each rule that has it. A Key that reads the
	// body can see the request's context end with it; then nothing is charged.
	// Where Shadow is set, any error leaves the rule out, and the log says so.
	Key keyfunc.Func

	// Cost is what the request takes; nil means 1. 0 only looks, and refuses if
	// nothing remains. A negative cost is a failure, and nothing is charged; where
	// Shadow is set it leaves the rule out, and the log says so. Bound a number
	// that the client chooses: at least 1, or asking is free.
	Cost func(*http.Request) int64

	// Unit is what Cost counts, for the header fields of [Draft11] only: "requests",
	// which "" means too, "content-bytes" or "concurrent-requests".
	Unit string

	// Shadow rules are counted and stand in the Decision, but refuse nothing and
	// do not show in headers: a limit can be tried out before it is enforced.
	Shadow bool

	// Refund tells for which status of the answer the request is not to pay: what it
	// took is given back when its handler returns. func(s int) bool { return s <
	// 500 && s != 401 } counts failures to log in. A handler that panics counts as
	// 500, one that writes nothing as 200, and one that takes the connection over
	// (Hijack) as 101. [Middleware.Handler] and chi's adapter see to it, for which
	// they hand on a ResponseWriter of their own; it has the methods of the one it
	// wraps, and Unwrap. gin's goes by gin's own writer, in which a connection that is
	// taken over counts as 200. It can't be set with Pace.
	//
	// Nothing is given back to a window that wasn't charged. Between charge and
	// refund others can have been refused. A refund that fails is logged, and the
	// charge stays.
	Refund func(status int) bool

	// Pace makes the rule a queue: a request that is let in is held until what was
	// let in before it has drained, so that requests go on one after the other, at
	// the policy's rate and not in a burst. The policy needs a bucket without
	// steps, such as [algorithms.LeakyBucket], and the store exact times, which
	// cellstore has not. Its Burst is the room of the queue,
	// the one whose turn it is included: a request that does not fit is refused, and
	// none is held for longer than (Burst − 1) × Period / Count. A held request
	// keeps its connection; choose a Burst with which that time is well below the
	// server's WriteTimeout.
	//
	// Of several rules with Pace the latest turn counts. A request whose context is
	// done while it is held is answered by Failed at once. It stays charged: to
	// leave the queue moves nobody else's turn. (Over HTTP/1, net/http sees that a
	// client is gone only once the body has been read.)
	Pace bool
}

// policies are all that the rule may charge.
func (rule *Rule) policies() []*algorithms.Policy {
	if rule.PolicyOf != nil {
		return rule.Policies
	}
	return []*algorithms.Policy{rule.Policy}
}

// policy is what rule charges for r, or the error ErrSkip.
func (rule *Rule) policy(r *http.Request) (*algorithms.Policy, error) {
	if rule.PolicyOf == nil {
		return rule.Policy, nil
	}
	p := rule.PolicyOf(r)
	switch {
	case p == nil:
		return nil, keyfunc.ErrSkip
	case !slices.Contains(rule.Policies, p):
		return nil, &FieldError{Field: "PolicyOf", Value: p.Name(), Reason: "is not one of Policies, the same pointers"}
	}
	return p, nil
}

// charge is what rule asks of r.
func (rule *Rule) charge(r *http.Request) (store.Charge, error) {
	policy, err := rule.policy(r)
	if err != nil {
		return store.Charge{}, err
	}
	key, err := rule.Key(r)
	if err != nil {
		return store.Charge{}, err
	}
	if key == "" {
		return store.Charge{}, keyfunc.ErrNoKey
	}
	c := store.Charge{Policy: policy, Key: keyfunc.Bound(key), Cost: 1}
	if rule.Cost != nil {
		if c.Cost = rule.Cost(r); c.Cost < 0 {
			return store.Charge{}, &FieldError{Field: "Cost of policy " + policy.Name(), Value: c.Cost, Reason: "must not be negative"}
		}
	}
	if rule.Shadow {
		c.Mode = store.Shadow
	}
	return c, nil
}
