package middleware

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// settings are a Config that was checked, with all that can be worked out before
// there are requests. They don't change: a request is decided by those it began
// with.
type settings struct {
	store   store.Store
	rules   []Rule
	ban     *algorithms.Policy
	banKey  keyfunc.Func // nil: that of the first rule
	shadow  bool         // of all rules
	settles bool         // some rule counts by outcome
	skip    func(*http.Request) bool
	flight  bool // a preflight is skipped
	exempt  keyfunc.Match
	block   keyfunc.Match
	headers headers
	denied  func(http.ResponseWriter, *http.Request, Decision)
	failed  func(http.ResponseWriter, *http.Request, error)
	observe func(context.Context, Event)
	keys    bool // observe may have the keys

	log      *failureLog
	trials   *failureLog // of Shadow rules: of its own, so that a rule on trial hides no failure
	refunds  *failureLog
	warnings *warnings
}

// New checks the whole of c and makes a Middleware of it. The error joins a
// *[FieldError] for each mistake and what the store says against the policies.
// It does no I/O: a store that is away is not a mistake.
func New(c Config) (*Middleware, error) {
	s, err := compile(&c)
	if err != nil {
		return nil, err
	}
	s.warnings.builtInHandler()
	m := &Middleware{}
	m.current.Store(s)
	return m, nil
}

// Reconfigure has requests decided by c from now on, as New would; with an error,
// which is New's, nothing changes. It is safe while requests run: each is decided,
// answered and settled by the Config it began with. What was used stays used where
// c has the same store and policies of the same names; their limits may change.
func (m *Middleware) Reconfigure(c Config) error {
	if m == nil {
		return errNil
	}
	s, err := compile(&c)
	if err != nil {
		return err
	}
	m.current.Store(s)
	return nil
}

// Bypass is the switch for the day on which a limit is wrong and there is no time
// to find out why: while it is on, every request passes uncounted and without
// headers, whatever Reconfigure says. The log has both turns of it, Observe every
// request. It is off at first.
func (m *Middleware) Bypass(on bool) {
	if m == nil || m.bypassed.Swap(on) == on {
		return
	}
	message := "rate limits are enforced again"
	if on {
		message = "rate limits are bypassed: every request passes"
	}
	m.current.Load().log.to().LogAttrs(context.Background(), slog.LevelWarn, message)
}

func compile(c *Config) (*settings, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &settings{
		store:   c.Store,
		rules:   slices.Clone(c.Rules),
		ban:     c.Ban,
		banKey:  c.BanKey,
		shadow:  c.Shadow,
		skip:    c.Skip,
		flight:  c.SkipPreflight,
		exempt:  c.Exempt,
		block:   c.Block,
		denied:  c.Denied,
		failed:  c.Failed,
		observe: c.Observe,
		keys:    c.ObserveKeys,
		log:     newFailureLog(c.Logger, "rate limit could not be decided"),
		trials:  newFailureLog(c.Logger, "shadow rule was left out"),
		refunds: newFailureLog(c.Logger, "rate limit could not be given back"),
	}
	for i := range s.rules {
		rule := &s.rules[i]
		rule.Policies = slices.Clone(rule.Policies)
		rule.Shadow = rule.Shadow || c.Shadow
		rule.Pace = rule.Pace && !rule.Shadow
		s.settles = s.settles || rule.Refund != nil
	}
	if c.Shadow {
		s.ban, s.banKey = nil, nil
	}
	if s.denied == nil {
		s.denied = DefaultDenied
	}
	if s.failed == nil {
		s.failed = DefaultFailed
	}
	s.headers = c.Headers.compile(s.rules, s.ban)
	s.warnings = newWarnings(c.Logger, s.rules)
	return s, nil
}
