// Package redisstore keeps the states of keys in Redis, for any number of
// processes. A group of charges, however many, is one script: one round trip,
// decided and written in one step.
//
// See docs/redis.md for the keys, the rights, the versions, and what a cluster,
// a ring and a fail-over can and can't promise.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/goredis"
	"github.com/weirgo/weir/store"
)

// DefaultPrefix begins the keys of a Store where Config does not say.
const DefaultPrefix = "weir:"

// ErrCrossSlot is returned by Take, before anything is sent, for a group whose
// keys a cluster or a ring keeps on different servers. It is of the kind
// [errors.ErrUnsupported].
var ErrCrossSlot = fmt.Errorf("weir: the keys of this group are in different slots; set Config.Tag, or wrap the store in store.Sequential: %w", errors.ErrUnsupported)

// Config is how a Store is made. The zero Config is a good one for a single
// server.
type Config struct {
	// Prefix begins all keys; empty means [DefaultPrefix]. It has no braces.
	Prefix string

	// Tag, if it is set, is what all keys are hashed by, so that on a cluster or a
	// ring any group of charges is one decision. The price is that one slot, and
	// so one server, decides everything.
	Tag string

	// Sharded says that the client spreads keys over servers. It is known of
	// [redis.ClusterClient] and [redis.Ring]; set it for what wraps one of those.
	Sharded bool

	// Clock is the time of decisions. Nil means the server's clock, which all
	// processes share. With a clock of the caller's, life times still run by the
	// server's, and the clocks of all processes must agree: what one is ahead of
	// another by is credited and debited.
	Clock func() time.Time
}

// Store is a [store.Store] in Redis. Besides the errors of the contract, Take
// returns the server's and the client's: after one of those that say nothing of
// it, a time-out say, the charges may have been made, and are not made again.
type Store struct {
	client  Client
	prefix  string
	tag     string
	sharded bool
	clock   func() time.Time
	scripts scripts
}

var _ store.Store = (*Store)(nil)

// New makes a Store. It does no I/O: a server that is away is no mistake. The
// error joins a *[algorithms.FieldError] for each mistake, among them a client
// whose time-outs are its own: without ContextTimeoutEnabled go-redis ignores
// the deadline of a request's context.
func New(client Client, c Config) (*Store, error) {
	var errs []error
	bad := func(field string, value any, reason string) {
		errs = append(errs, &algorithms.FieldError{Field: field, Value: value, Reason: reason})
	}
	s := &Store{client: client, prefix: c.Prefix, tag: c.Tag, clock: c.Clock}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	for field, value := range map[string]string{"redisstore.Config.Prefix": c.Prefix, "redisstore.Config.Tag": c.Tag} {
		if strings.ContainsAny(value, "{}") {
			bad(field, value, "must have no braces: they say what a key is hashed by")
		}
	}
	s.sharded = goredis.Check(client, bad) || c.Sharded
	s.scripts.clock = serverClock
	if s.clock != nil {
		s.scripts.clock = callerClock
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Validate refuses policies whose algorithm has no script, and on a cluster or a
// ring without a Tag more than one policy. The error matches
// [errors.ErrUnsupported].
func (s *Store) Validate(policies ...*algorithms.Policy) error {
	var errs []error
	for i, p := range policies {
		if p == nil {
			errs = append(errs, &algorithms.FieldError{Field: fmt.Sprintf("policies[%d]", i), Reason: "is missing"})
		} else if _, err := s.scripts.twin(p); err != nil {
			errs = append(errs, err)
		}
	}
	if s.sharded && s.tag == "" && len(policies) > 1 {
		errs = append(errs, fmt.Errorf("weir: %d policies in one group, and the client spreads keys over servers: "+
			"set Config.Tag, which keeps all keys on one, or wrap the store in store.Sequential, which is not atomic: %w", len(policies), errors.ErrUnsupported))
	}
	return errors.Join(errs...)
}

// Take decides charges as one group, in one script.
func (s *Store) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := store.Check(ctx, charges, results); err != nil {
		return err
	}
	if len(charges) == 0 {
		return nil
	}
	if s.sharded && !s.oneSlot(charges) {
		return ErrCrossSlot
	}
	// Alone, a Forget goes the way of groups: the scripts of single charges are as
	// short as they can be.
	if len(charges) == 1 && !isLog(charges[0].Policy) && charges[0].Mode != store.Forget {
		return s.takeOne(ctx, &charges[0], &results[0])
	}
	script, args, err := s.composeGroup(charges)
	if err != nil {
		return err
	}
	cmd, err := goredis.Run(ctx, s.client, script, args, newNumbers)
	if err != nil {
		return goredis.Failure(ctx, err)
	}
	reply := cmd.Val()
	if len(reply) != 5*len(results) {
		return errReply
	}
	for i := range results {
		if results[i], err = answer(reply[5*i : 5*i+5]); err != nil {
			return err
		}
	}
	return nil
}

// takeOne decides a single charge. Alone, a Shadow is charged like any other,
// and a Strike, which no other charge refuses, looks.
func (s *Store) takeOne(ctx context.Context, c *store.Charge, r *algorithms.Result) error {
	cost := c.Cost
	if c.Mode == store.Strike {
		cost = 0
	}
	script, args, err := s.composeOne(c, cost)
	if err != nil {
		return err
	}
	cmd, err := goredis.Run(ctx, s.client, script, args, newText)
	if err != nil {
		return goredis.Failure(ctx, err)
	}
	*r, err = decideAgain(c, cost, cmd.Val())
	return err
}
