package histories

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store"
)

// A history is so large that calls meet, and so small that it is checked at once.
const (
	cells = 3 // keys under policies, which all calls are about
	calls = 5 // of each caller

	callers = 7
	fewer   = 4 // where calls may fail, which makes more orders possible
)

// operation is one call of Take: what is planned, and what came of it.
type operation struct {
	charges []store.Charge
	cells   []int         // what the charges are about
	yields  int           // how often others get the processor before the call
	tick    bool          // the clock moves on at about the time of the call
	dead    bool          // its context is done before it is called
	within  time.Duration // the deadline of its context, if not 0

	caller        int
	called, ended int64   // moments, counted
	times         []int64 // µs; what the clock has shown from call to return
	results       []algorithms.Result
	err           error
	end           bool // no call: all that have returned did so before
}

func (o *operation) String() string {
	var s strings.Builder
	for i, c := range o.charges {
		fmt.Fprintf(&s, "{%s %q %v %d", c.Policy.ID(), c.Key, c.Mode, c.Cost)
		if c.Age > 0 {
			fmt.Fprintf(&s, " age %v", c.Age)
		}
		s.WriteString("}")
		if o.err == nil {
			fmt.Fprintf(&s, " %+v ", o.results[i])
		}
	}
	if o.err != nil {
		fmt.Fprintf(&s, " %v", o.err)
	}
	return s.String()
}

// subject is what a history is about: a policy and the beginning of a key for each
// cell.
type subject struct {
	name     string
	policies [cells]*algorithms.Policy
	keys     [cells]string
}

// subjects are each algorithm alone, and some that meet in one group.
func subjects(t *testing.T) []subject {
	var all []subject
	for _, a := range casetest.Algorithms() {
		p, q := policy(t, "p", a, limits[0]), policy(t, "q", a, limits[1])
		all = append(all, subject{form(a), [cells]*algorithms.Policy{p, p, q}, [cells]string{"k", "l", "k"}})
	}
	mixed := func(name string, as ...algorithms.Algorithm) {
		s := subject{name: name}
		for i, a := range as {
			s.policies[i], s.keys[i] = policy(t, a.Name(), a, limits[i%2]), "k"
		}
		all = append(all, s)
	}
	mixed("log-gcra-ban", algorithms.SlidingLog{}, algorithms.GCRA{}, casetest.AnyBan{})
	mixed("window-counter-tokens", algorithms.FixedWindow{}, algorithms.SlidingCounter{}, algorithms.TokenBucket{Stepped: true})
	return all
}

// form is an algorithm's name, and which of its forms it is.
func form(a algorithms.Algorithm) string {
	name := a.Name()
	switch a := a.(type) {
	case algorithms.FixedWindow:
		if a.Aligned {
			name += "-aligned"
		}
	case algorithms.LeakyBucket:
		if a.Stepped {
			name += "-stepped"
		}
	case algorithms.TokenBucket:
		if a.Stepped {
			name += "-stepped"
		}
	}
	return name
}

// limits are so low that many calls meet them.
var limits = [...]algorithms.Limit{
	{Count: 4, Period: time.Second},
	{Count: 7, Period: 3 * time.Second, Burst: 3},
}

// policy is one of a limit, without its burst where the algorithm refuses one.
func policy(t *testing.T, name string, a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		l.Burst = 0
		p, err = algorithms.NewPolicy(name, a, l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plan is what each caller calls in history n. No two histories share a key.
func (s *subject) plan(rnd *rand.Rand, n, callers int, groups bool) [][]*operation {
	plan := make([][]*operation, callers)
	for caller := range plan {
		for range calls {
			o := &operation{caller: caller, yields: rnd.IntN(4), dead: rnd.IntN(20) == 0}
			size, pace := 1, 6 // time goes slower where less is charged
			if groups {
				size, pace = 1+rnd.IntN(cells), 3
			}
			o.tick = rnd.IntN(pace) == 0
			for _, i := range rnd.Perm(cells)[:size] {
				o.cells = append(o.cells, i)
				o.charges = append(o.charges, s.charge(rnd, i, n))
			}
			o.results = make([]algorithms.Result, size)
			plan[caller] = append(plan[caller], o)
		}
	}
	return plan
}

func (s *subject) charge(rnd *rand.Rand, i, n int) store.Charge {
	c := store.Charge{Policy: s.policies[i], Key: fmt.Sprintf("%s%d", s.keys[i], n)}
	modes := []store.Mode{store.Enforce, store.Enforce, store.Enforce, store.Enforce, store.Shadow, store.Strike, store.Strike, store.Forget}
	costs := []int64{1, 1, 1, 1, 2, 3, 0, -1, -2, 9}
	c.Mode, c.Cost = modes[rnd.IntN(len(modes))], costs[rnd.IntN(len(costs))]
	switch {
	case c.Mode == store.Forget:
		c.Cost = 0
	case c.Mode == store.Strike:
		c.Cost = max(c.Cost, -c.Cost)
	case c.Cost < 0:
		c.Age = time.Duration(rnd.Int64N(int64(time.Second)))
	}
	return c
}

// moves is how far the clock goes each time: from next to nothing to a period.
func moves(rnd *rand.Rand, n int) []time.Duration {
	some := []time.Duration{
		time.Microsecond, time.Millisecond, 50 * time.Millisecond, 137_911 * time.Microsecond,
		250 * time.Millisecond, 333_333 * time.Microsecond, 3 * time.Second / 7, time.Second,
	}
	ds := make([]time.Duration, n)
	for i := range ds {
		ds[i] = some[rnd.IntN(len(some))].Truncate(time.Microsecond)
	}
	return ds
}
