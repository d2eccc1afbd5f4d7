// Package store says what it means to charge a key, for every store alike.
//
// A [Store] keeps the states of keys and lets the algorithm of each charge's
// policy decide. Packages memstore and others implement it; package storetest
// holds any implementation to the sentences in its comment.
package store

import (
	"context"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Mode is the part that a charge plays in its group.
type Mode uint8

const (
	// Enforce is the ordinary charge: where it does not fit, the group is refused.
	Enforce Mode = iota
	// Shadow never refuses: it is taken if the group passes and it fits.
	Shadow
	// Strike punishes: it must pass as a look, and is taken only when another
	// charge refuses the group. It is how refusals are counted for a ban.
	Strike
	// Forget takes nothing and never refuses: if the group passes, its key is as if
	// it had never been seen. It is how failures are forgiven, and a ban is lifted.
	Forget
)

// String is the mode's name.
func (m Mode) String() string {
	switch m {
	case Enforce:
		return "enforce"
	case Shadow:
		return "shadow"
	case Strike:
		return "strike"
	case Forget:
		return "forget"
	}
	return "unknown"
}

// Charge asks a policy for some units for a key.
type Charge struct {
	Policy *algorithms.Policy
	Key    string        // any bytes but none; who or what is limited
	Cost   int64         // > 0 takes, 0 looks, < 0 gives back
	Age    time.Duration // of a give-back: how long ago it was taken, measured from before that Take on the caller's monotonic clock
	Mode   Mode
}

// AgeMicros is Age in whole microseconds, rounded up, as algorithms take it.
func (c *Charge) AgeMicros() int64 {
	us := c.Age.Microseconds()
	if c.Age%time.Microsecond > 0 {
		us++
	}
	return us
}

// Store makes charges. It is safe for concurrent use.
//
// The contract:
//
//  1. Take decides the charges as one group: all are made or none is. A group is
//     refused if a charge in Enforce mode is limited, or a charge in Strike mode
//     is limited as a look. No other call sees or makes half of a group.
//  2. results[i] answers charges[i]: it is what the policy's algorithm says of
//     the key's state at the store's time. All charges of a group have one time.
//  3. A charge that fits while another refuses the group is not limited: its
//     result has RetryAfter 0, and shows what the key has without the charge.
//  4. A refused group changes nothing but its Strike charges. Only a life time
//     shorter than the present ResetAfter is lengthened, by any charge.
//  5. A charge in Shadow mode that does not fit is limited in its result, is not
//     made, and refuses nothing.
//  6. A charge in Strike mode is made when another charge refuses the group: it
//     takes its cost, or what remains if that is less. Otherwise it is a look.
//  7. A give-back (Cost < 0) never refuses. It returns what still counts of what
//     was taken Age ago, and never lifts a key above its capacity; not to give
//     back more than was taken is the caller's part.
//  8. A look (Cost 0) makes no key and changes none.
//  9. Two charges meet the same state if and only if their keys and the names of
//     their policies and algorithms are equal; the limit is no part of it.
//  10. A key lives for the ResetAfter of the charge that last changed it, and then
//     is a key never seen. A live key that is limited is not forgotten before,
//     but by a charge in Forget mode.
//  11. The same state twice in one group is [ErrDuplicate]. A charge without
//     policy or key, with a negative Age, an unknown Mode, a negative cost in
//     Strike mode, or any cost or Age in Forget mode is a
//     *[algorithms.FieldError]. Nothing is charged.
//  12. If ctx is done before Take begins, its error is returned and nothing is
//     charged.
//  13. An error is never a denial, and a denial never an error. After an error the
//     results mean nothing. Unless the store can tell that it charged nothing, it
//     does not try again.
//  14. Take keeps neither slice, and needs as many results as charges.
//  15. A charge in Forget mode always fits. If the group passes, its key becomes
//     one never seen, whatever it was, and the result is that of a look at such
//     a key.
type Store interface {
	// Validate says whether these policies can be charged here, together in one
	// group. It is asked when a program starts, does no I/O, and gives an error
	// that says what can't be done and what to do instead, matching
	// [errors.ErrUnsupported] where the store lacks the ability.
	Validate(policies ...*algorithms.Policy) error

	// Take decides charges and writes the answers to results.
	Take(ctx context.Context, charges []Charge, results []algorithms.Result) error
}
