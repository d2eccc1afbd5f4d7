package middleware

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// Outcome is what became of a request.
type Outcome uint8

const (
	Allowed  Outcome = iota // it was counted and may pass
	Refused                 // a rule refused it
	Banned                  // the ban did
	Blocked                 // Config.Block matched
	NoKey                   // a rule or the ban found no key
	Failed                  // it could not be decided
	Exempted                // Skip, SkipPreflight or Exempt let it pass
	Bypassed                // Bypass did
)

var outcomes = [...]string{"allowed", "refused", "banned", "blocked", "no_key", "failed", "exempted", "bypassed"}

// String is the outcome in lower case, such as "no_key".
func (o Outcome) String() string {
	if int(o) >= len(outcomes) {
		return "unknown"
	}
	return outcomes[o]
}

// Event tells an observer of one request. It is valid until the observer returns.
type Event struct {
	Outcome Outcome
	Passed  bool          // the request goes on; where all rules are Shadow rules, a failure doesn't change that
	Policy  string        // which refused: the strictest, or the ban; "" where none did
	Err     error         // of NoKey, Failed and Blocked; it may tell of the inside
	Latency time.Duration // of the store; 0 where it wasn't asked
	Delay   time.Duration // for which rules with Pace will hold the request

	node *node
	keys bool
}

// RuleEvent is the part of one rule, or the ban, in an [Event].
type RuleEvent struct {
	Policy    string
	Algorithm string
	Cost      int64
	Result    algorithms.Result
	Mode      store.Mode // a Shadow rule that would have refused has Result.Limited
	Near      bool       // it is not limited, and a tenth or less of the limit remains
	Key       string     // "" unless Config.ObserveKeys is set
}

// Rules are the rules that were charged, in their order, and the ban: those left
// out are not among them, and there are none where the store was not asked or has
// failed.
func (e Event) Rules() iter.Seq[RuleEvent] {
	return func(yield func(RuleEvent) bool) {
		if e.node == nil || !e.node.charged {
			return
		}
		d := &e.node.decision
		for i := range d.Charges {
			c, r := &d.Charges[i], d.Results[i]
			if c.Policy == nil {
				continue
			}
			one := RuleEvent{
				Policy:    c.Policy.Name(),
				Algorithm: c.Policy.Algorithm().Name(),
				Cost:      c.Cost,
				Result:    r,
				Mode:      c.Mode,
				Near:      r.Limit > 0 && !r.Limited && r.Remaining <= r.Limit/10, // with Limit 0 nobody decided
			}
			if e.keys {
				one.Key = c.Key
			}
			if !yield(one) {
				return
			}
		}
	}
}

// tell tells the observer of n's request, whose decision ended with err.
func (s *settings) tell(ctx context.Context, n *node, err error, passes bool) {
	if s.observe == nil {
		return
	}
	d := &n.decision
	e := Event{Passed: passes, Err: err, Latency: n.latency, Delay: d.Delay, node: n, keys: s.keys}
	switch {
	case errors.Is(err, ErrBlocked):
		e.Outcome = Blocked
	case errors.Is(err, keyfunc.ErrNoKey):
		e.Outcome = NoKey
	case err != nil:
		e.Outcome = Failed
	case d.Refused >= 0:
		e.Outcome, e.Policy = Refused, d.RefusedBy()
		if d.Charges[d.Refused].Mode == store.Strike {
			e.Outcome = Banned
		}
	}
	s.observe(ctx, e)
}

// LogEvents is an observer that logs to logger, or [slog.Default] where that is
// nil: refusals, bans, blocked requests and those that a Shadow rule would have
// refused at level Info, failures at Error, all else at Debug. Each refusal is a
// line: under a flood, have the handler sample. A key is logged only where
// Config.ObserveKeys is set.
func LogEvents(logger *slog.Logger) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		l := logger
		if l == nil {
			l = slog.Default()
		}
		level := slog.LevelDebug
		switch e.Outcome {
		case Refused, Banned, Blocked:
			level = slog.LevelInfo
		case Failed:
			level = slog.LevelError
		}
		if level == slog.LevelDebug {
			for rule := range e.Rules() {
				if rule.Mode == store.Shadow && rule.Result.Limited {
					level = slog.LevelInfo
				}
			}
		}
		if !l.Enabled(ctx, level) {
			return
		}
		attrs := []slog.Attr{slog.String("outcome", e.Outcome.String()), slog.Bool("passed", e.Passed)}
		if e.Policy != "" {
			attrs = append(attrs, slog.String("policy", e.Policy))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("error", e.Err))
		}
		if e.Latency > 0 {
			attrs = append(attrs, slog.Duration("latency", e.Latency))
		}
		if e.Delay > 0 {
			attrs = append(attrs, slog.Duration("delay", e.Delay))
		}
		for rule := range e.Rules() {
			attrs = append(attrs, slog.Attr{Key: rule.Policy, Value: slog.GroupValue(rule.attrs()...)})
		}
		l.LogAttrs(ctx, level, "rate limit", attrs...)
	}
}

func (r RuleEvent) attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.Bool("limited", r.Result.Limited),
		slog.Int64("remaining", r.Result.Remaining),
		slog.Int64("cost", r.Cost),
	}
	if r.Mode != store.Enforce {
		attrs = append(attrs, slog.String("mode", r.Mode.String()))
	}
	if r.Near {
		attrs = append(attrs, slog.Bool("near", true))
	}
	if r.Key != "" {
		attrs = append(attrs, slog.String("key", r.Key))
	}
	return attrs
}
