package store

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// DenyCache is s with its denials remembered in this process, so that who goes on
// asking after a refusal costs s nothing. A denial counts until its RetryAfter,
// taken from before s was asked, and for at most maxAge, for the same policy (the
// same pointer), the same key and at least the same cost: a limit that is lifted or
// a refund made elsewhere shows after maxAge at the latest. What is given back or
// forgotten here is forgotten at once.
//
// A group is refused from memory if a charge of it is remembered as denied. That
// charge's result is what it was, with less time to wait: what has been taken since
// doesn't show, so the wait can be longer than it says. What else was asked, s has
// not been, and has the zero Result, whose Limit of 0 says that nobody decided. A
// group with a look goes to s, since a look wants to know; so does one with a Strike,
// as it counts refusals, unless the ban itself is what is remembered.
//
// At most maxKeys denials are kept, in about 150 bytes each beside the key; more push
// out others.
// It starts nothing and needs no closing. maxAge and maxKeys must be positive: a
// mistake is reported by Validate and by every Take.
func DenyCache(s Store, maxAge time.Duration, maxKeys int) Store {
	var mistakes []error
	if maxAge <= 0 {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "store.DenyCache.maxAge", Value: maxAge, Reason: "must be positive, such as 1s"})
	}
	if maxKeys < 1 {
		mistakes = append(mistakes, &algorithms.FieldError{Field: "store.DenyCache.maxKeys", Value: maxKeys, Reason: "must be at least 1, such as 65536"})
	}
	return &denyCache{
		around: checkAround("DenyCache", s, mistakes...),
		maxAge: min(maxAge, 1<<61), // sums of times must not overflow
		most:   (maxKeys-1)/denyShards + 1,
		seed:   maphash.MakeSeed(),
		start:  time.Now(),
	}
}

const denyShards = 16

type denyCache struct {
	around
	maxAge time.Duration
	most   int // denials a shard keeps
	seed   maphash.Seed
	start  time.Time // times count from here, by the monotonic clock
	shards [denyShards]denyShard

	// forgotten counts what was given back or forgotten. A denial from before is not
	// remembered after it: it may be older.
	forgotten atomic.Uint64
}

type denyShard struct {
	sync.Mutex
	denials map[denyKey]denial
}

// denyKey is found faster than one with the key itself, which its denial has.
type denyKey struct {
	policy *algorithms.Policy
	hash   uint64 // of the key, which is seeded: nobody can make two keys meet
}

// denial is a result that limited, as it was at a time.
type denial struct {
	key    string
	at     time.Duration // since the start, before the store was asked
	until  time.Duration // it counts
	cost   int64
	result algorithms.Result
}

// Resolution is the store's.
func (d *denyCache) Resolution() time.Duration { return Resolution(d.store) }

// Take answers from memory, or has the store decide and remembers.
func (d *denyCache) Take(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	if d.wrong != nil {
		return d.wrong
	}
	if len(charges) != 1 || charges[0].Age != 0 { // of one, answer sees the mistakes
		if err := Check(ctx, charges, results); err != nil {
			return err
		}
	}
	now := time.Since(d.start)
	if ctx.Err() == nil && len(results) == len(charges) && d.answer(charges, results, now) {
		return nil
	}
	asked := d.forgotten.Load()
	d.forget(charges)
	err := d.store.Take(ctx, charges, results)
	d.forget(charges)
	if err != nil {
		return err
	}
	for i := range charges {
		if c := &charges[i]; results[i].Limited && remembered(c) {
			d.remember(c, results[i], now, asked)
		}
	}
	return nil
}

// remembered tells whether a denial of c is one for others too.
func remembered(c *Charge) bool {
	return c.Mode == Enforce && c.Cost > 0 || c.Mode == Strike
}

// answer refuses the group if it can.
func (d *denyCache) answer(charges []Charge, results []algorithms.Result, now time.Duration) bool {
	refused, banned, strikes := false, false, false
	for i := range charges {
		c := &charges[i]
		if c.Policy == nil || c.Key == "" || c.Mode == Enforce && c.Cost == 0 || c.Mode > Strike {
			return false
		}
		strikes = strikes || c.Mode == Strike
		results[i] = algorithms.Result{}
		if !remembered(c) {
			continue
		}
		if r, ok := d.find(c, now); ok {
			results[i] = r
			refused = true
			banned = banned || c.Mode == Strike
		}
	}
	return refused && (banned || !strikes)
}

// place is where a denial of c is kept, and under which name.
func (d *denyCache) place(c *Charge) (*denyShard, denyKey) {
	h := maphash.String(d.seed, c.Key)
	return &d.shards[h%denyShards], denyKey{c.Policy, h}
}

// find is the remembered denial of c, as it reads now.
func (d *denyCache) find(c *Charge, now time.Duration) (algorithms.Result, bool) {
	s, k := d.place(c)
	s.Lock()
	one, ok := s.denials[k]
	s.Unlock()
	if !ok || now >= one.until || c.Cost < one.cost || c.Key != one.key {
		return algorithms.Result{}, false
	}
	r, passed := one.result, now-one.at
	if r.RetryAfter != algorithms.Never {
		r.RetryAfter -= passed // which is longer: it counts until then at most
	}
	r.ResetAfter = max(0, r.ResetAfter-passed)
	return r, true
}

func (d *denyCache) remember(c *Charge, r algorithms.Result, at time.Duration, asked uint64) {
	// A key can be a part of a whole request, which must not be kept with it.
	one := denial{key: strings.Clone(c.Key), at: at, until: at + d.maxAge, cost: c.Cost, result: r}
	if r.RetryAfter != algorithms.Never {
		one.until = at + min(d.maxAge, r.RetryAfter)
	}
	if time.Since(d.start) >= one.until {
		return
	}
	s, k := d.place(c)
	s.Lock()
	defer s.Unlock()
	if d.forgotten.Load() != asked {
		return
	}
	if s.denials == nil {
		s.denials = make(map[denyKey]denial)
	}
	if _, ok := s.denials[k]; !ok && len(s.denials) >= d.most {
		s.makeRoom(time.Since(d.start))
	}
	s.denials[k] = one
}

// makeRoom drops what no longer counts among some denials, or else one of them. Go
// begins at any.
func (s *denyShard) makeRoom(now time.Duration) {
	looked, dropped := 0, false
	for k, one := range s.denials {
		if looked++; now >= one.until || looked == 8 && !dropped {
			delete(s.denials, k)
			dropped = true
		}
		if looked == 8 {
			return
		}
	}
	if !dropped { // there are fewer than 8
		for k := range s.denials {
			delete(s.denials, k)
			return
		}
	}
}

// forget drops what is remembered of states that charges give back to or forget.
func (d *denyCache) forget(charges []Charge) {
	for i := range charges {
		c := &charges[i]
		if c.Policy == nil || c.Cost >= 0 && c.Mode != Forget {
			continue
		}
		s, k := d.place(c)
		s.Lock()
		d.forgotten.Add(1) // under the lock: who remembers later sees it
		delete(s.denials, k)
		s.Unlock()
	}
}
