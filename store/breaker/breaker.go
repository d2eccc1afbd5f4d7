// Package breaker keeps requests from waiting for a store that is away: after some
// failures in a row it is not asked for a while. The work is done by
// [github.com/sony/gobreaker].
package breaker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// ErrOpen says that the store was not asked, as it has failed before. Nothing was
// charged. [store.Fallback] and [store.FailOpen] take it for the failure that it is.
var ErrOpen = errors.New("weir: the store is left alone for a while, after failures")

// The defaults of a [Config].
const (
	DefaultFailures = 5
	DefaultCooldown = time.Second
)

// Config is when to stop asking, and for how long. The zero Config is a good one.
type Config struct {
	// Failures in a row open the breaker; 0 means [DefaultFailures]. What the caller
	// ends, and mistakes in charges, are none ([store.IsFailure]), nor are they
	// successes.
	Failures int

	// Cooldown is how long the store is then not asked; 0 means [DefaultCooldown].
	// After it one request tries: the breaker closes if that succeeds, and is open for
	// another Cooldown if it fails. No restart is needed.
	Cooldown time.Duration

	// Changed is told when the breaker opens, and with what failure, and when it closes
	// again (nil). It is called while others wait: it must be quick, and must not use
	// the store. Nil tells nobody.
	Changed func(opened bool, why error)
}

// New is s behind a breaker. s should have a time limit of its own, such as
// [store.Timeout]: while one request tries, all others get ErrOpen. A mistake in c,
// or no s, is reported by Validate and by every Take.
func New(s store.Store, c Config) store.Store {
	b := &guarded{store: s}
	var mistakes []error
	if v := reflect.ValueOf(s); s == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		b.store = nil
		mistakes = append(mistakes, &algorithms.FieldError{Field: "breaker.New: s", Reason: "is missing"})
	}
	if c.Failures < 0 || int64(c.Failures) > 1<<31 {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "breaker.Config.Failures", Value: c.Failures, Reason: "must be positive, or 0 for the default"})
	}
	if c.Cooldown < 0 {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "breaker.Config.Cooldown", Value: c.Cooldown, Reason: "must be positive, or 0 for the default"})
	}
	if b.wrong = errors.Join(mistakes...); b.wrong != nil {
		return b
	}
	if c.Failures == 0 {
		c.Failures = DefaultFailures
	}
	if c.Cooldown == 0 {
		c.Cooldown = DefaultCooldown
	}
	var last error // of the failure that opens it; written and read under gobreaker's lock
	settings := gobreaker.Settings{
		Timeout:     c.Cooldown,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= uint32(c.Failures) },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNotCounted) },
		IsSuccessful: func(err error) bool {
			last = err
			return err == nil
		},
	}
	if c.Changed != nil {
		settings.OnStateChange = func(_ string, from, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				if from == gobreaker.StateClosed {
					c.Changed(true, last)
				}
			case gobreaker.StateClosed:
				c.Changed(false, nil)
			}
		}
	}
	b.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](settings)
	return b
}

// errNotCounted marks what is neither a failure nor a success of the store.
var errNotCounted = errors.New("not counted")

type guarded struct {
	store   store.Store
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	wrong   error
}

// Validate asks the store.
func (b *guarded) Validate(policies ...*algorithms.Policy) error {
	if b.store == nil {
		return b.wrong
	}
	return errors.Join(b.wrong, b.store.Validate(policies...))
}

// Resolution is the store's.
func (b *guarded) Resolution() time.Duration { return store.Resolution(b.store) }

// Take asks the store, unless the breaker is open.
func (b *guarded) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) (err error) {
	if b.wrong != nil {
		return b.wrong
	}
	if err := store.Check(ctx, charges, results); err != nil {
		return err // no try is spent on it
	}
	done, err := b.breaker.Allow()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOpen, err)
	}
	told := errNotCounted // where the store panics, too
	defer func() { done(told) }()
	err = b.store.Take(ctx, charges, results)
	if err == nil || store.IsFailure(ctx, err) {
		told = err
	}
	return err
}
