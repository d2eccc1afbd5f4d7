// Package notice carries what a key function finds odd in a request to the
// middleware that asked it, which warns of it in its log.
package notice

import "context"

// Code names a likely mistake in how limits are set up. It stands in logs and in
// docs/warnings.md.
type Code string

const (
	UntrustedHeaders Code = "WEIR101" // forwarding headers arrive, and nothing is trusted
	OneKey           Code = "WEIR102" // thousands of requests have one key
	EveryoneTrusted  Code = "WEIR103" // whoever connects is believed
	BuiltInHandler   Code = "WEIR104" // a middleware is made for each request
)

// Key is the context key of a func(Code) that takes notices.
type Key struct{}

// Send tells whether somebody takes notices of requests with this context, and
// if so gives them the code.
func Send(ctx context.Context, c Code) bool {
	take, ok := ctx.Value(Key{}).(func(Code))
	if ok {
		take(c)
	}
	return ok
}
