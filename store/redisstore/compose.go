package redisstore

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/goredis"
	"github.com/weirgo/weir/internal/twin"
	"github.com/weirgo/weir/store"
)

// scripts are those made so far. There are two for each algorithm, and a few for
// each set of algorithms that is charged in one group.
type scripts struct {
	clock   clock
	twins   sync.Map // algorithm's name → *known
	byGroup sync.Map // size and names of algorithms, joined → *goredis.Script
}

// known is an algorithm with its scripts.
type known struct {
	twin.Twin
	name string
	one  *goredis.Script // a cost of 1
	any  *goredis.Script
	log  bool // a sorted set: it has no twin, and no scripts of its own
}

// slidingLog keeps each unit apart, in a sorted set, which the driver knows how
// to do; as a list in one value, each charge would write all of it.
var slidingLog = &known{twin.Twin{Params: 4}, algorithms.SlidingLog{}.Name(), nil, nil, true}

func isLog(p *algorithms.Policy) bool {
	switch p.Algorithm().(type) {
	case algorithms.SlidingLog, *algorithms.SlidingLog:
		return true
	}
	return false
}

// twin is the twin of p's algorithm.
func (s *scripts) twin(p *algorithms.Policy) (*known, error) {
	if isLog(p) {
		return slidingLog, nil
	}
	a, ok := p.Algorithm().(algorithms.Scripted)
	if !ok {
		return nil, fmt.Errorf("weir: policy %s: algorithm %s has no script for Redis: %w", p.Name(), p.Algorithm().Name(), errors.ErrUnsupported)
	}
	body := strings.TrimSpace(a.Lua())
	v, ok := s.twins.Load(a.Name())
	if !ok {
		t := twin.Parse(body)
		v, _ = s.twins.LoadOrStore(a.Name(), &known{t, a.Name(), singleScript(t, s.clock, true), singleScript(t, s.clock, false), false})
	}
	k := v.(*known)
	if k.Body != body || k.name == slidingLog.name {
		return nil, fmt.Errorf("weir: policy %s: two algorithms are named %s", p.Name(), a.Name())
	}
	if len(p.Params()) < k.Params {
		return nil, fmt.Errorf("weir: policy %s: the script of %s uses %d params, and it has %d", p.Name(), a.Name(), k.Params, len(p.Params()))
	}
	return k, nil
}

// group is the script for a group of n charges under these algorithms. There is
// one for each power of two of charges.
func (s *scripts) group(ks []*known, n int) *goredis.Script {
	size := 1 << bits.Len(uint(n-1))
	id := strconv.Itoa(size)
	for _, k := range ks {
		id += ":" + k.name
	}
	v, ok := s.byGroup.Load(id)
	if !ok {
		v, _ = s.byGroup.LoadOrStore(id, groupScript(ks, size, s.clock))
	}
	return v.(*goredis.Script)
}

// compose begins the arguments of a script; the first two are left for run.
func (s *Store) compose(charges ...*store.Charge) []any {
	args := make([]any, 3, 4+10*len(charges))
	args[2] = len(charges)
	for _, c := range charges {
		args = append(args, s.name(c))
	}
	if s.clock != nil {
		args = append(args, max(-maxNumber, min(maxNumber, s.clock().UnixMicro())))
	}
	return args
}

// composeOne is the script for a single charge and its arguments.
func (s *Store) composeOne(c *store.Charge, cost int64) (*goredis.Script, []any, error) {
	k, err := s.scripts.twin(c.Policy)
	if err != nil {
		return nil, nil, err
	}
	args := s.compose(c)
	script := k.one
	if cost != 1 {
		script, args = k.any, append(args, clampCost(cost), clampAge(c.AgeMicros()))
	}
	params := c.Policy.Params()[:k.Params]
	for len(params) > 0 && params[len(params)-1] == 1 {
		params = params[:len(params)-1]
	}
	return script, appendParams(args, params), nil
}

// composeGroup is the script for a group of charges and its arguments.
func (s *Store) composeGroup(charges []store.Charge) (*goredis.Script, []any, error) {
	ks, cs := make([]*known, len(charges)), make([]*store.Charge, len(charges))
	for i := range charges {
		k, err := s.scripts.twin(charges[i].Policy)
		if err != nil {
			return nil, nil, err
		}
		ks[i], cs[i] = k, &charges[i]
	}
	// In order, so that a set of algorithms is one script, whatever the group's.
	set := slices.Clone(ks)
	slices.SortFunc(set, func(a, b *known) int { return strings.Compare(a.name, b.name) })
	set = slices.Compact(set)
	args := s.compose(cs...)
	for i, c := range cs {
		args = append(args, slices.Index(set, ks[i])+1, int(c.Mode), clampCost(c.Cost), clampAge(c.AgeMicros()))
		args = appendParams(args, c.Policy.Params()[:ks[i].Params])
	}
	return s.scripts.group(set, len(charges)), args, nil
}

func appendParams(args []any, params []int64) []any {
	for _, n := range params {
		args = append(args, n)
	}
	return args
}

// clampCost keeps a cost where a double holds it, and above every capacity if it
// was: those are at most 2⁵³. The next number that a double holds is two more; one
// in between would be read as 2⁵³.
func clampCost(n int64) int64 {
	switch {
	case n > maxNumber:
		return maxNumber + 2
	case n < -maxNumber:
		return -maxNumber - 2
	}
	return n
}

// clampAge is an age that a double holds, up to 1 µs longer. A Duration has less
// than 2⁵⁴ µs, so that it need not be cut: a bucket can drain for as long as that.
func clampAge(n int64) int64 {
	if n > maxNumber {
		n += n & 1
	}
	return n
}

const maxNumber = 1 << 53
