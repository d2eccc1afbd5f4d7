// Package cellstore decides by CL.THROTTLE, the command of the redis-cell module:
// GCRA in the server itself, for a third to a half of the server time that a
// script takes. One charge is one command; there are no groups.
//
// Its answers are redis-cell's: waits in whole seconds. See docs/redis-cell.md for
// what else is different, and for what can go wrong with the module.
//
// https://github.com/brandur/redis-cell
package cellstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/goredis"
	"github.com/weirgo/weir/store"
)

// DefaultPrefix begins the keys of a Store where Config does not say. It is not
// that of redisstore: the module ends the whole server over a key that holds
// anything but its own number.
const DefaultPrefix = "weir-cell:"

// ErrNoModule is returned by Take where the server does not know CL.THROTTLE. It is a
// failure of the store: another server may know it, as after a fail-over.
var ErrNoModule = errors.New("weir: the server has no CL.THROTTLE: load the module redis-cell (redis-server --loadmodule libredis_cell.so), or use redisstore, which needs none")

// errReply is returned for a reply that CL.THROTTLE does not give.
var errReply = errors.New("weir: redis: the reply is not that of CL.THROTTLE")

// Client is what a Store sends commands to: [redis.Client], also for Sentinel,
// [redis.ClusterClient], [redis.Ring], or what wraps one of them.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Config is how a Store is made. The zero Config is a good one.
type Config struct {
	// Prefix begins all keys; empty means [DefaultPrefix]. It is valid UTF-8, has no
	// braces, and nothing else in the database has keys that begin with it.
	Prefix string
}

// Store is a [store.Store] that decides by CL.THROTTLE, at the server's time. It
// holds the contract but for these differences:
//
//   - A group of more than one charge is refused, by Validate and by Take, with an
//     error that matches [errors.ErrUnsupported]: see [store.Sequential].
//   - RetryAfter and ResetAfter are whole seconds, rounded up; a rest of less than a
//     millisecond is dropped. A wait of less than that is 1 ms. The RetryAfter that
//     the module does not tell, of a look or a charge that passes, is as exact as the
//     ResetAfter that it is worked out from.
//   - The interval Period / Count is cut to whole nanoseconds, so that callers get
//     up to a part in ten thousand more at 100 000 units a second, and far less
//     below. Remaining is cut by the module in its own way, and can be one too high
//     or, at rates like that, a few per cent; it is never above the capacity.
//   - The module keeps the time at which a key is as good as new, and not the units:
//     under another limit, the same time counts (law 8 of [algorithms.Algorithm]).
//   - Nothing ahead of the clock is stale (law 7): where the server's clock steps
//     back, callers wait for as long as it did.
//   - A give-back is made by a script, as exactly as the algorithm says: the
//     module's own, a negative quantity, leaves a key without end where the key has
//     just run out. It needs the module's own state, which Dragonfly does not have.
//   - So is a charge in Forget mode. It asks the module for nothing: that there is
//     none, it does not find out.
//
// Besides the errors of the contract, Take returns the server's and the client's:
// after one of those that say nothing of it, a time-out say, the charge may have
// been made, and is not made again.
type Store struct {
	client Client
	prefix string
}

var _ store.Store = (*Store)(nil)

// New makes a Store. It does no I/O: a server that is away, or has no module, is
// found out by Take. The error joins a *[algorithms.FieldError] for each mistake,
// among them a client whose time-outs are its own: without ContextTimeoutEnabled
// go-redis ignores the deadline of a request's context.
func New(client Client, c Config) (*Store, error) {
	var errs []error
	bad := func(field string, value any, reason string) {
		errs = append(errs, &algorithms.FieldError{Field: field, Value: value, Reason: reason})
	}
	s := &Store{client: client, prefix: c.Prefix}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	if strings.ContainsAny(c.Prefix, "{}") {
		bad("cellstore.Config.Prefix", c.Prefix, "must have no braces: they say what a key is hashed by")
	}
	if !utf8.ValidString(c.Prefix) {
		bad("cellstore.Config.Prefix", c.Prefix, "must be valid UTF-8: the module ends the server over a key that is not")
	}
	goredis.Check(client, bad)
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Resolution is a second: see [store.Resolution].
func (s *Store) Resolution() time.Duration { return time.Second }

// Validate refuses more than one policy, algorithms other than GCRA, and limits
// that the module can't count. The error matches [errors.ErrUnsupported].
func (s *Store) Validate(policies ...*algorithms.Policy) error {
	var errs []error
	for i, p := range policies {
		if p == nil {
			errs = append(errs, &algorithms.FieldError{Field: fmt.Sprintf("policies[%d]", i), Reason: "is missing"})
		} else if _, err := compile(p); err != nil {
			errs = append(errs, err)
		}
	}
	if len(policies) > 1 {
		errs = append(errs, fmt.Errorf("%d policies: %w", len(policies), errGroup))
	}
	return errors.Join(errs...)
}

var errGroup = fmt.Errorf("weir: redis-cell decides one charge at a time: wrap the store in store.Sequential, which is not atomic, or use redisstore: %w", errors.ErrUnsupported)

// Take decides a charge.
func (s *Store) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := store.Check(ctx, charges, results); err != nil {
		return err
	}
	switch len(charges) {
	case 0:
		return nil
	case 1:
		r, err := s.takeOne(ctx, &charges[0])
		if err == nil {
			results[0] = r
		}
		return err
	}
	return errGroup
}

// takeOne decides a single charge. Alone, a Shadow is charged like any other, and
// a Strike, which no other charge refuses, looks.
func (s *Store) takeOne(ctx context.Context, c *store.Charge) (algorithms.Result, error) {
	l, err := compile(c.Policy)
	if err != nil {
		return algorithms.Result{}, err
	}
	key, cost := s.name(c), c.Cost
	if c.Mode == store.Strike {
		cost = 0
	}
	switch {
	case c.Mode == store.Forget:
		return s.forget(ctx, key, l)
	case cost < 0:
		if err := s.giveBack(ctx, key, l, cost, c.AgeMicros()); err != nil {
			return algorithms.Result{}, err
		}
		return s.look(ctx, key, l, cost)
	case cost == 0 || cost > l.burst:
		return s.look(ctx, key, l, cost)
	}
	r, err := s.throttle(ctx, key, l, cost)
	if err != nil {
		return algorithms.Result{}, err
	}
	return r.charge(l, cost)
}

// look asks for one unit more than there can be: the module refuses that, says
// what there is, and writes nothing. A quantity of 0 would make a key.
func (s *Store) look(ctx context.Context, key string, l limit, cost int64) (algorithms.Result, error) {
	r, err := s.throttle(ctx, key, l, l.burst+1)
	if err != nil {
		return algorithms.Result{}, err
	}
	return r.look(l, cost)
}

// decision is not sent again once it may have reached the server: the charge would
// be made twice. go-redis retries all other commands after a read time-out or a
// cut connection.
type decision struct{ *redis.Cmd }

// NoRetry is true.
func (decision) NoRetry() bool { return true }

func newDecision(ctx context.Context, args ...any) decision {
	return decision{redis.NewCmd(ctx, args...)}
}

// throttle sends CL.THROTTLE.
func (s *Store) throttle(ctx context.Context, key string, l limit, quantity int64) (reply, error) {
	cmd := newDecision(ctx, "cl.throttle", key, l.burst-1, l.count, l.seconds, quantity)
	err := goredis.Send(ctx, s.client, cmd)
	if errors.Is(err, redis.Nil) {
		return reply{}, errReply
	}
	if err != nil {
		return reply{}, failure(ctx, err)
	}
	return parse(cmd.Val())
}

// failure is what Take returns for an error of CL.THROTTLE.
func failure(ctx context.Context, err error) error {
	if redis.HasErrorPrefix(err, "unknown command") {
		return ErrNoModule
	}
	return goredis.Failure(ctx, err)
}
