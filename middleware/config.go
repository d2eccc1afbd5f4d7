package middleware

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// Rule is a Policy and how to find the key and the cost in a request.
type Rule struct {
	// Policy is how much is allowed and how it is counted. Each rule has one with
	// a name of its own. Middlewares that share a store share the state of
	// policies with the same name.
	Policy *algorithms.Policy

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

	// Shadow rules are counted and stand in the Decision, but refuse nothing and
	// do not show in headers: a limit can be tried out before it is enforced.
	Shadow bool

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

// Config says what a [Middleware] does. Store and Rules are required.
type Config struct {
	Store store.Store

	// Rules are decided together, as one group: a request that one of them
	// refuses costs nothing under the others.
	Rules []Rule

	// Ban keeps out clients who go on after refusals. It is a policy that counts
	// them: where a rule refuses, it is charged 1, in the same group; and while
	// nothing of it remains all is refused, which does not make that longer. The
	// refusal that takes the last of it is answered as the ban's already, with its
	// Retry-After. What a Shadow rule would refuse does not count, nor does a
	// failure. [algorithms.Ban] makes such policies, but any will do that has a name
	// of its own. Nil bans nobody.
	Ban *algorithms.Policy

	// BanKey identifies whom to ban. Nil means the key of the first rule, and no ban
	// for a request that this rule is left out for or finds no key in. Name who
	// asks, such as an address or an account, and not what is asked for, such as a
	// phone number, or anybody can have others banned.
	//
	// [keyfunc.ErrSkip] exempts a request from the ban. One without a key
	// ([keyfunc.ErrNoKey]) is answered as for Rule.Key, with 400 after the rules
	// were charged: if it could pass, to leave the key out would be the way around
	// the ban. Any other error is a failure, and nothing is charged.
	BanKey keyfunc.Func

	// Skip lets a request through uncounted and without headers for what it is, such
	// as a CORS preflight. Nil skips nothing.
	Skip func(*http.Request) bool

	// Exempt lets a request through uncounted and without headers for who sent it,
	// such as a monitor: [keyfunc.In] goes by address. Its error exempts nobody: who
	// isn't known is limited. Nil exempts nobody.
	Exempt keyfunc.Match

	// Block keeps out who it matches, before any charge and with no rate limit in
	// the answer: Failed gets [ErrBlocked]. Its error goes to Failed too: who isn't
	// known could be meant. It is asked after Skip and Exempt. Nil blocks nobody.
	Block keyfunc.Match

	// Denied writes the status and the body of a refusal. The headers are set, and
	// may be changed. Nil means [DefaultDenied]: 429, with a problem document (RFC
	// 9457) for clients that accept JSON and a line of text for others. It must
	// write a status, or the answer is 200; to add to the usual answer, end with
	// DefaultDenied.
	Denied func(http.ResponseWriter, *http.Request, Decision)

	// Failed answers a request that could not be decided, or may not pass for
	// another reason than a limit. Nil means [DefaultFailed]: 400 where err is
	// [keyfunc.ErrNoKey], 413 where it is [keyfunc.ErrBodyTooLong], 403 where it is
	// [ErrBlocked], and 503 for the rest.
	// err wraps what Rule.Key returned, so that a key function can say why it
	// found none, to be found here by [errors.As]; for a request that ended while
	// Pace held it, err wraps its context's error. It may tell of the inside and
	// is not for clients. Failed can't let the request pass; a store that does not
	// fail can.
	Failed func(http.ResponseWriter, *http.Request, error)

	// Logger gets failures and Shadow rules that were left out, of each at most
	// one a second, and at level Debug the requests without a key; never a key.
	// At level Warn it gets, once each, what looks like a mistake in how the limits
	// are set up, with a code that docs/warnings.md explains. Nil means
	// [slog.Default].
	Logger *slog.Logger
}

// FieldError is one mistake in a [Config].
type FieldError = algorithms.FieldError

// New checks the whole of c and makes a Middleware of it. The error joins a
// *[FieldError] for each mistake and what the store says against the policies.
// It does no I/O: a store that is away is not a mistake.
func New(c Config) (*Middleware, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &Middleware{
		store:  c.Store,
		rules:  slices.Clone(c.Rules),
		ban:    c.Ban,
		banKey: c.BanKey,
		skip:   c.Skip,
		exempt: c.Exempt,
		block:  c.Block,
		denied: c.Denied,
		failed: c.Failed,
		log:    newFailureLog(c.Logger, "rate limit could not be decided"),
		shadow: newFailureLog(c.Logger, "shadow rule was left out"),
	}
	if m.denied == nil {
		m.denied = DefaultDenied
	}
	if m.failed == nil {
		m.failed = DefaultFailed
	}
	m.warnings = newWarnings(c.Logger, m.rules)
	m.warnings.builtInHandler()
	return m, nil
}

func (c *Config) check() error {
	var errs []error
	bad := func(field string, value any, reason string) {
		errs = append(errs, &FieldError{Field: field, Value: value, Reason: reason})
	}
	noStore := isNil(c.Store)
	if noStore {
		bad("Store", nil, "is missing; memstore.New(memstore.Config{}) keeps counts in memory")
	}
	if len(c.Rules) == 0 {
		bad("Rules", c.Rules, "must have at least one rule; to limit nothing, leave the middleware out")
	}
	var policies []*algorithms.Policy
	names := map[string]int{}
	for i, rule := range c.Rules {
		field := func(name string) string { return fmt.Sprintf("Rules[%d].%s", i, name) }
		if rule.Key == nil {
			bad(field("Key"), nil, "is missing; keyfunc.IP(keyfunc.Trust{}) limits each address, keyfunc.Const all together")
		}
		checkKey(field("Key"), rule.Key, bad)
		rule.checkPace(c.Store, func(value any, reason string) { bad(field("Pace"), value, reason) })
		if rule.Policy == nil {
			bad(field("Policy"), nil, "is missing; algorithms.NewPolicy makes one, and gives nil with an error")
			continue
		}
		if rule.Policy.Algorithm() == nil {
			bad(field("Policy"), "", "was not made by algorithms.NewPolicy")
			continue
		}
		name := rule.Policy.Name()
		if first, ok := names[name]; ok {
			bad(field("Policy"), name, fmt.Sprintf("has the name of Rules[%d].Policy; each rule needs a policy with a name of its own", first))
			continue
		}
		names[name] = i
		policies = append(policies, rule.Policy)
	}
	checkKey("BanKey", c.BanKey, bad)
	if c.checkBan(names, bad) {
		policies = append(policies, c.Ban)
	}
	if !noStore {
		if err := c.Store.Validate(policies...); err != nil {
			errs = append(errs, fmt.Errorf("middleware.Config.Store: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkKey reports what key was made wrongly with.
func checkKey(field string, key keyfunc.Func, bad func(field string, value any, reason string)) {
	if key == nil {
		return
	}
	for _, err := range joined(keyfunc.Validate(key)) {
		if e := (*FieldError)(nil); errors.As(err, &e) {
			bad(field+": "+e.Field, e.Value, e.Reason)
		}
	}
}

// joined is the errors that err joins, at any depth.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	list, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, err := range list.Unwrap() {
		all = append(all, joined(err)...)
	}
	return all
}

// isNil also finds the nil pointer that an interface may hold.
func isNil(s store.Store) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
