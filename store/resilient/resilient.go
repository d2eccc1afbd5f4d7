// Package resilient is the recommended chain of stores around one that can be away,
// such as redisstore, in one call:
//
//	limits := resilient.New(redis, resilient.Config{Replicas: 4})
//
// A request waits 50 ms for it at most; after five failures in a row it is left alone
// for a second at a time; meanwhile each replica limits by its own memory, with its
// part of each limit; and who goes on asking after a denial is answered without it.
package resilient

import (
	"context"
	"time"

	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/memstore"
)

// The defaults of a [Config].
const (
	DefaultTimeout  = 50 * time.Millisecond
	DefaultDenyFor  = time.Second
	DefaultDenyKeys = 1 << 16
)

// Config is what can be said otherwise. Replicas is required, unless
// FailOpen is set; other zero values are good ones.
type Config struct {
	// Replicas is how many processes share the store, this one included: each lets
	// through this part of a limit while the store is away, and nothing that costs more
	// than its part of the Burst. Where their number changes, take the largest.
	Replicas int

	// Timeout is how long a request waits for the store at most; 0 means
	// [DefaultTimeout]. It must be below the deadlines of requests: one whose own
	// deadline ends first is no failure of the store, and has an error.
	Timeout time.Duration

	// Breaker is when the store is left alone, and for how long.
	Breaker breaker.Config

	// Memory is the memory behind the store.
	Memory memstore.Config

	// FailOpen lets everything pass while the store is away, in the place of the
	// memory. There are no limits then.
	FailOpen bool

	// DenyFor is how long a denial is remembered at most; 0 means [DefaultDenyFor].
	// For so long a limit that is lifted elsewhere may not show. DenyKeys is how many
	// are remembered; 0 means [DefaultDenyKeys].
	DenyFor  time.Duration
	DenyKeys int

	// Failed is told of each request that the store failed, and why, breaker.ErrOpen
	// included, by many at once. Breaker.Changed is told only of the beginning and the
	// end. Nil tells nobody.
	Failed func(context.Context, error)
}

// New puts the chain together: DenyCache(Fallback(breaker(Timeout(s)),
// Divide(memory))), or FailOpen in the place of Fallback. A mistake is reported by
// Validate, and so by middleware.New, and by every Take.
func New(s store.Store, c Config) store.Store {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.DenyFor == 0 {
		c.DenyFor = DefaultDenyFor
	}
	if c.DenyKeys == 0 {
		c.DenyKeys = DefaultDenyKeys
	}
	s = breaker.New(store.Timeout(s, c.Timeout), c.Breaker)
	if c.FailOpen {
		s = store.FailOpen(s, c.Failed)
	} else {
		s = store.Fallback(s, store.Divide(memstore.New(c.Memory), c.Replicas), c.Failed)
	}
	return store.DenyCache(s, c.DenyFor, c.DenyKeys)
}
