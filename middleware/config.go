package middleware

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

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

	// Shadow makes trial of the whole: every rule is a Shadow rule, and no request is
	// kept out, not by Block or a failure of the store either. The Ban is left out,
	// as nobody is refused whom it could count.
	Shadow bool

	// Skip lets a request through uncounted and without headers for what it is, such
	// as a health check. Nil skips nothing.
	Skip func(*http.Request) bool

	// SkipPreflight does so for CORS preflights: OPTIONS with Origin and
	// Access-Control-Request-Method, which a browser sends by itself before the
	// request. Where a handler does more for OPTIONS than answer them, leave it off.
	SkipPreflight bool

	// Exempt lets a request through uncounted and without headers for who sent it,
	// such as a monitor: [keyfunc.In] goes by address. Its error exempts nobody: who
	// isn't known is limited. Nil exempts nobody.
	Exempt keyfunc.Match

	// Block keeps out who it matches, before any charge and with no rate limit in
	// the answer: Failed gets [ErrBlocked]. Its error goes to Failed too: who isn't
	// known could be meant. It is asked after Skip and Exempt. Nil blocks nobody.
	Block keyfunc.Match

	// Headers are those that tell clients of the limits: the zero value sets
	// X-RateLimit-Limit, -Remaining and -Reset on every answer.
	Headers Headers

	// Denied writes the status and the body of a refusal. The headers are set, and
	// may be changed. Nil means [DefaultDenied]: 429, with a problem document (RFC
	// 9457) for clients that accept JSON and a line of text for others. It must
	// write a status, or the answer is 200; to add to the usual answer, end with
	// DefaultDenied.
	Denied func(http.ResponseWriter, *http.Request, Decision)

	// Failed answers a request that could not be decided, or may not pass for
	// another reason than a limit. Cache-Control is set to no-store, and may be
	// changed. Nil means [DefaultFailed]: 400 where err is [keyfunc.ErrNoKey], 413
	// where it is [keyfunc.ErrBodyTooLong], 403 where it is [ErrBlocked], and 503 for
	// the rest. [FromContext] has the Decision, as far as there is one. err wraps what
	// Rule.Key returned, so that a key function can say why it found none, to be found
	// here by [errors.As]; for a request that ended while Pace held it, err wraps its
	// context's error. It may tell of the inside and is not for clients. Failed can't
	// let the request pass; a store that does not fail can.
	Failed func(http.ResponseWriter, *http.Request, error)

	// Observe is told of every request, once: for metrics and logs. It is called
	// before the request goes on, so it must be quick; it is called by many requests
	// at once. [LogEvents] makes one, package middleware/expvars another.
	Observe func(context.Context, Event)

	// ObserveKeys lets Observe have the keys, which can be personal data.
	ObserveKeys bool

	// Logger gets failures and Shadow rules that were left out, of each at most
	// one a second, and at level Debug the requests without a key; never a key.
	// At level Warn it gets, once each, what looks like a mistake in how the limits
	// are set up, with a code that docs/warnings.md explains. Nil means
	// [slog.Default].
	Logger *slog.Logger
}

// FieldError is one mistake in a [Config].
type FieldError = algorithms.FieldError
