// Package memstore keeps the states of keys in memory: for one process, for
// tests, and behind a store that can be away.
package memstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// DefaultMaxKeys is how many keys a Store keeps where Config does not say: about
// 140 MB of them. A sliding log takes about ten bytes more for each unit it holds.
const DefaultMaxKeys = 1 << 20

// ErrFull is returned where a new key would have to push out one that is
// limited. It is a failure of the store, not a denial: nothing was charged.
var ErrFull = errors.New("weir: memory store is full of limited keys")

// Config is how a Store is made. The zero Config is a good one.
type Config struct {
	// MaxKeys is the most keys kept at a time, 1 to 2³¹ − 1; 0 means
	// [DefaultMaxKeys]. When they are reached, a new key takes the place of the
	// one nearest its reset that is not limited, or of one close to that where
	// thousands have changed since; if all are limited, Take returns [ErrFull].
	MaxKeys int

	// Clock tells the time of decisions, for tests and simulations. It is called
	// by many at once, and by the timer that frees keys. Nil means the wall clock
	// at New plus the monotonic time since: setting the wall clock does not move
	// it. What has run out by the Clock is freed within a minute of real time. A time
	// more than 285 years from 1970 counts as one that far.
	Clock func() time.Time
}

// Store is a [store.Store] in memory. A decision on a key that it keeps
// allocates nothing.
//
// A key is kept as a keyed 128-bit hash of it and of its policy's and
// algorithm's names, not as its text: it takes the same room however long it is,
// and no personal data. Among n keys, the odds that two share a state are
// n²/2¹²⁹.
//
// A charge in Shadow mode on a new key that finds no room is not made, and is
// answered as a look.
//
// A Store needs no closing. While it keeps keys a timer frees what has run out;
// when it is empty nothing runs, and a Store that is dropped is collected.
type Store struct {
	seeds [3]maphash.Seed
	clock func() int64 // µs since the Unix epoch
	max   int64
	wrong error // what is wrong with the Config

	live   atomic.Int64 // keys kept or being added; never above max
	shards []shard      // a power of two of them, at most 64
	sweep  sweeper
}

var _ store.Store = (*Store)(nil)

// New makes a Store. A mistake in c is reported by Validate, and so by
// middleware.New, and by every Take.
func New(c Config) *Store {
	s := &Store{
		seeds: [3]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()},
		max:   int64(c.MaxKeys),
	}
	switch {
	case s.max == 0:
		s.max = DefaultMaxKeys
	case s.max < 0 || s.max > math.MaxInt32:
		s.wrong = &algorithms.FieldError{Field: "memstore.Config.MaxKeys", Value: c.MaxKeys, Reason: "must be 1 to 2147483647, or 0 for the default"}
	}
	if c.Clock != nil {
		s.clock = func() int64 { return max(-latest, min(latest, c.Clock().UnixMicro())) }
	} else {
		start := time.Now()
		wall := start.UnixMicro()
		s.clock = func() int64 { return wall + time.Since(start).Microseconds() }
	}
	n := min(4*runtime.GOMAXPROCS(0), 64)
	s.shards = make([]shard, 1<<bits.Len(uint(n-1)))
	return s
}

// latest is the latest time that is counted, in µs, and the earliest one is as far
// before 1970: sums of times must not overflow, or nothing would be limited.
const latest = 1 << 53

// Len is how many keys are kept, counting those that have run out but are not
// freed yet.
func (s *Store) Len() int { return int(s.live.Load()) }

// mistake is what is wrong with how s was made.
func (s *Store) mistake() error {
	if s.shards == nil {
		return &algorithms.FieldError{Field: "memstore.Store", Value: "", Reason: "was not made by memstore.New"}
	}
	return s.wrong
}

// Validate accepts any policies: whatever decides in Go decides here.
func (s *Store) Validate(policies ...*algorithms.Policy) error {
	errs := []error{s.mistake()}
	for i, p := range policies {
		if p == nil {
			errs = append(errs, &algorithms.FieldError{Field: fmt.Sprintf("policies[%d]", i), Reason: "is missing"})
		}
	}
	return errors.Join(errs...)
}

// Take decides charges as one group, under the locks of the keys' shards.
func (s *Store) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := store.Check(ctx, charges, results); err != nil {
		return err
	}
	if err := s.mistake(); err != nil || len(charges) == 0 {
		return err
	}
	g := s.newGroup(charges, results)
	defer g.free()

	err := g.takeLocked(g.set, false)
	if err == errNoRoom {
		// Which key is to go can only be said with all of them in view.
		err = g.takeLocked(s.all(), true)
	}
	return err
}

// all is the set of all shards.
func (s *Store) all() uint64 { return math.MaxUint64 >> (64 - len(s.shards)) }

// lock locks a set of shards, in ascending order so that no two calls wait for
// each other.
func (s *Store) lock(set uint64) {
	for ; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Lock()
	}
}

func (s *Store) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		s.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// id is what a key is known by.
type id struct{ a, b uint64 }

// hash is the id of a key under a policy. The policy's part is folded in, not
// hashed together with the key: that saves copying the two into one.
func (s *Store) hash(policy, key string) id {
	p := maphash.String(s.seeds[0], policy)
	return id{
		a: maphash.String(s.seeds[1], key) ^ p,
		b: maphash.String(s.seeds[2], key) ^ bits.RotateLeft64(p, 32),
	}
}
