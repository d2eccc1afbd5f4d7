package storetest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// Options is what [Run] checks a store with. The zero Options are those of a
// store that decides exactly, under GCRA.
type Options struct {
	// Algorithms to charge with; nil means GCRA.
	Algorithms []algorithms.Algorithm

	// Limits of the random groups, each of which all Algorithms accept, with its
	// Burst or without; nil means easy and awkward ones.
	Limits []algorithms.Limit

	// Steps is how many random groups each of the checks with a random walk compares
	// with the model, "forget" a fifth of them; 0 means 1500.
	Steps int

	// Seed of the random groups; 0 means a new one, which failures name.
	Seed uint64

	// Resolution is the unit, if it is more than 1 µs, that the store's RetryAfter and
	// ResetAfter are rounded to: they may be less than so much apart from the exact
	// ones. An exact wait of 0 is 0, and one below it no more than that.
	Resolution time.Duration

	// Except names the checks that the store can't pass, each with the reason.
	// They are skipped.
	Except map[string]string
}

// Run checks that a store holds the contract in the comment of [store.Store].
// open gives a store without keys that reads its time from clock; it is called
// once for each check and algorithm, and cleans up by t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, clock *Clock) store.Store, o Options) {
	if o.Algorithms == nil {
		o.Algorithms = []algorithms.Algorithm{algorithms.GCRA{}}
	}
	if o.Steps == 0 {
		o.Steps = 1500
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if err := o.misnamed(); err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if reason, ok := o.Except[c.name]; ok {
				t.Skipf("left out: %s", reason)
			}
			for _, a := range o.Algorithms {
				t.Run(a.Name(), func(t *testing.T) {
					clock := NewClock()
					c.check(&fixture{reporter: t, o: o, a: a, clock: clock, store: open(t, clock)})
				})
			}
		})
	}
}

// misnamed is an error for an exception that is none, or has no reason.
func (o *Options) misnamed() error {
	left := maps.Clone(o.Except)
	for _, c := range checks {
		if left[c.name] != "" {
			delete(left, c.name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("storetest: Options.Except must name checks and say why: %v", left)
	}
	return nil
}

// fixture is a store under one check.
type fixture struct {
	reporter
	o     Options
	a     algorithms.Algorithm
	clock *Clock
	store store.Store
}

var checks = []struct {
	name  string
	check func(*fixture)
}{
	{"group", (*fixture).checkGroup},
	{"modes", (*fixture).checkModes},
	{"give back", (*fixture).checkGiveBack},
	{"look", (*fixture).checkLook},
	{"forget", (*fixture).checkForget},
	{"forget in groups", (*fixture).checkForgetInGroups},
	{"state", (*fixture).checkState},
	{"keys", (*fixture).checkKeys},
	{"bounds", (*fixture).checkBounds},
	{"life time", (*fixture).checkLifeTime},
	{"mistakes", (*fixture).checkMistakes},
	{"context", (*fixture).checkContext},
	{"slices", (*fixture).checkSlices},
	{"concurrent", (*fixture).checkConcurrent},
	{"changed limits", (*fixture).checkChangedLimits},
	{"random groups", func(f *fixture) { f.Helper(); f.checkRandom(walk{}) }},
	{"random limits", func(f *fixture) { f.Helper(); f.checkRandom(walk{limits: true}) }},
	{"clock back", func(f *fixture) { f.Helper(); f.checkRandom(walk{limits: true, back: true}) }},
}

// policy is one that the check's algorithm accepts: l, without its burst where
// the algorithm refuses one.
func (f *fixture) policy(name string, l algorithms.Limit) *algorithms.Policy {
	f.Helper()
	p, err := algorithms.NewPolicy(name, f.a, l)
	if err != nil && l.Burst != 0 {
		l.Burst = 0
		p, err = algorithms.NewPolicy(name, f.a, l)
	}
	if err != nil {
		f.Fatalf("%v", err)
	}
	return p
}

func (f *fixture) take(charges ...store.Charge) []algorithms.Result {
	f.Helper()
	results := make([]algorithms.Result, len(charges))
	if err := f.store.Take(context.Background(), charges, results); err != nil {
		f.Fatalf("Take(%s): %v", describe(charges), err)
	}
	return results
}

func (f *fixture) one(p *algorithms.Policy, key string, cost int64) algorithms.Result {
	f.Helper()
	return f.take(store.Charge{Policy: p, Key: key, Cost: cost})[0]
}

// walk is what may happen on a random walk beside charges.
type walk struct {
	limits bool // limits change
	back   bool // the clock steps back
}

// checkRandom compares random groups at random times with the model. A store whose
// Validate refuses two policies is asked for one charge at a time.
func (f *fixture) checkRandom(w walk) {
	f.Helper()
	rnd := rand.New(rand.NewPCG(f.o.Seed, 1))
	m := newModel(f.clock)
	limits := f.o.Limits
	if limits == nil {
		limits = []algorithms.Limit{
			algorithms.PerSecond(3), {Count: 7, Period: 3 * time.Second}, algorithms.PerMinute(30).WithBurst(16),
			algorithms.PerSecond(10).WithBurst(1), {Count: 13, Period: 86_401 * time.Second}, {Count: 2, Period: 10 * time.Millisecond},
		}
	}
	names := walkNames
	policies := map[string]*algorithms.Policy{}
	for _, n := range names {
		policies[n] = f.policy(n, limits[rnd.IntN(len(limits))])
	}
	most := 4
	if f.store.Validate(policies["a"], policies["b"]) != nil {
		most = 1
	}
	last := time.Duration(0)
	for step := range f.o.Steps {
		if rnd.IntN(25) == 0 && (w.limits || step == 0) {
			n := names[rnd.IntN(len(names))]
			policies[n] = f.policy(n, limits[rnd.IntN(len(limits))])
		}
		moves := []time.Duration{0, 0, 0, time.Microsecond, time.Millisecond, last, last - time.Microsecond, time.Duration(rnd.Int64N(int64(2*time.Second) + 1))}
		if w.back {
			moves = append(moves, -time.Second)
		}
		move := moves[rnd.IntN(len(moves))].Truncate(time.Microsecond)
		if !w.back {
			move = max(move, 0)
		}
		if move < 0 {
			// A key that has run out may be gone or may not, and must not come back
			// to life: a look sees to it that it is gone.
			f.settle(m, policies, true)
			if !f.looks(m, step, names, policies, most) {
				return
			}
		}
		f.clock.Advance(move)
		f.settle(m, policies, false)

		charges := f.randomGroup(rnd, names, policies, most)
		got, ok := f.same(m, step, charges)
		if !ok {
			return
		}
		for _, r := range got {
			if wait := max(r.RetryAfter, r.ResetAfter); wait > 0 && wait < 10*time.Second && rnd.IntN(2) == 0 {
				last = wait
			}
		}
	}
}

// settle lets milliseconds pass until no key has just run out whose state would
// still tell.
func (f *fixture) settle(m *model, policies map[string]*algorithms.Policy, anything bool) {
	for m.justExpired(policies, anything) {
		f.clock.Advance(time.Millisecond)
	}
}

// same takes charges from the store and the model and compares the answers.
func (f *fixture) same(m *model, step int, charges []store.Charge) ([]algorithms.Result, bool) {
	f.Helper()
	got, want := make([]algorithms.Result, len(charges)), make([]algorithms.Result, len(charges))
	gotErr, wantErr := f.store.Take(context.Background(), charges, got), m.Take(context.Background(), charges, want)
	if gotErr != nil || wantErr != nil {
		f.Fatalf("step %d, seed %d: Take(%s): %v, model: %v", step, f.o.Seed, describe(charges), gotErr, wantErr)
	}
	if !slices.EqualFunc(got, want, f.equal) {
		sentence(2).broke(f, "step %d, seed %d, %s at %d:\ngot  %+v\nwant %+v", step, f.o.Seed, describe(charges), f.clock.Now().UnixMicro(), got, want)
		return nil, false
	}
	return got, true
}

// equal tells whether a store may answer a where the model says b.
func (f *fixture) equal(a, b algorithms.Result) bool {
	near := func(a, b time.Duration) bool {
		return a == b || f.o.Resolution > 0 && a >= 0 && b > 0 && max(a-b, b-a) < f.o.Resolution
	}
	return a.Limited == b.Limited && a.Limit == b.Limit && a.Remaining == b.Remaining && near(a.RetryAfter, b.RetryAfter) && near(a.ResetAfter, b.ResetAfter)
}

// The policies and the keys of random walks.
var walkNames, walkKeys = []string{"a", "b", "c"}, []string{"k", "l"}

// looks looks at every key, as many at a time as the store can.
func (f *fixture) looks(m *model, step int, names []string, policies map[string]*algorithms.Policy, most int) bool {
	f.Helper()
	var charges []store.Charge
	for _, n := range names {
		for _, key := range walkKeys {
			charges = append(charges, store.Charge{Policy: policies[n], Key: key})
		}
	}
	for some := range slices.Chunk(charges, most) {
		if _, ok := f.same(m, step, some); !ok {
			return false
		}
	}
	return true
}

func (f *fixture) randomGroup(rnd *rand.Rand, names []string, policies map[string]*algorithms.Policy, most int) []store.Charge {
	var charges []store.Charge
	for range 1 + rnd.IntN(most)*rnd.IntN(2) {
		p := policies[names[rnd.IntN(len(names))]]
		capacity := p.Limit().Count
		costs := []int64{1, 1, 1, 2, 0, -1, 1 + rnd.Int64N(capacity+2), -rnd.Int64N(capacity + 1), math.MaxInt64}
		c := store.Charge{Policy: p, Key: walkKeys[rnd.IntN(len(walkKeys))], Cost: costs[rnd.IntN(len(costs))]}
		if rnd.IntN(3) == 0 {
			c.Mode = store.Mode(rnd.IntN(4))
		}
		if c.Mode == store.Forget {
			c.Cost = 0
		}
		if c.Cost < 0 {
			c.Age = time.Duration(rnd.Int64N(int64(time.Second)))
			if c.Mode == store.Strike {
				c.Cost = -c.Cost
			}
		}
		if !slices.ContainsFunc(charges, func(o store.Charge) bool { return idOf(o) == idOf(c) }) {
			charges = append(charges, c)
		}
	}
	return charges
}
