package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/twin"
	"github.com/weirgo/weir/store"
)

// scripts are those made so far. There are two for each algorithm, and one for
// each set of algorithms that is charged in one group.
type scripts struct {
	clock   clock
	twins   sync.Map // algorithm's name → *known
	byGroup sync.Map // names of algorithms, joined → *script
}

// known is an algorithm with its scripts.
type known struct {
	twin.Twin
	name string
	one  *script // a cost of 1
	any  *script
}

// twin is the twin of p's algorithm.
func (s *scripts) twin(p *algorithms.Policy) (*known, error) {
	a, ok := p.Algorithm().(algorithms.Scripted)
	if !ok {
		return nil, fmt.Errorf("weir: policy %s: algorithm %s has no script for Redis: %w", p.Name(), p.Algorithm().Name(), errors.ErrUnsupported)
	}
	body := strings.TrimSpace(a.Lua())
	v, ok := s.twins.Load(a.Name())
	if !ok {
		t := twin.Parse(body)
		v, _ = s.twins.LoadOrStore(a.Name(), &known{t, a.Name(), singleScript(t, s.clock, true), singleScript(t, s.clock, false)})
	}
	k := v.(*known)
	if k.Body != body {
		return nil, fmt.Errorf("weir: policy %s: two algorithms are named %s", p.Name(), a.Name())
	}
	if len(p.Params()) < k.Params {
		return nil, fmt.Errorf("weir: policy %s: the script of %s uses %d params, and it has %d", p.Name(), a.Name(), k.Params, len(p.Params()))
	}
	return k, nil
}

// group is the script for any group of charges under these algorithms.
func (s *scripts) group(ks []*known) *script {
	var names []string
	for _, k := range ks {
		names = append(names, k.name)
	}
	id := strings.Join(names, ":")
	v, ok := s.byGroup.Load(id)
	if !ok {
		var ts []twin.Twin
		for _, k := range ks {
			ts = append(ts, k.Twin)
		}
		v, _ = s.byGroup.LoadOrStore(id, groupScript(ts, s.clock))
	}
	return v.(*script)
}

// compose is the script for charges and its arguments; the first two are left
// for run.
func (s *Store) compose(charges []store.Charge) (*script, []any, error) {
	args := make([]any, 3, 3+8*len(charges))
	args[2] = len(charges)
	for i := range charges {
		args = append(args, s.name(&charges[i]))
	}
	if s.clock != nil {
		args = append(args, s.clock().UnixMicro())
	}
	if len(charges) == 1 {
		return s.composeOne(&charges[0], args)
	}
	ks := make([]*known, len(charges))
	for i := range charges {
		k, err := s.scripts.twin(charges[i].Policy)
		if err != nil {
			return nil, nil, err
		}
		ks[i] = k
	}
	// In order, so that a set of algorithms is one script, whatever the group's.
	set := slices.Clone(ks)
	slices.SortFunc(set, func(a, b *known) int { return strings.Compare(a.name, b.name) })
	set = slices.Compact(set)
	for i := range charges {
		c := &charges[i]
		args = append(args, slices.Index(set, ks[i])+1, int(c.Mode), clamp(c.Cost), clamp(c.AgeMicros()))
		args = appendParams(args, ks[i], c.Policy)
	}
	return s.scripts.group(set), args, nil
}

// composeOne is compose for a single charge. Alone, a Shadow is charged like any
// other, and a Strike, which no other charge refuses, looks.
func (s *Store) composeOne(c *store.Charge, args []any) (*script, []any, error) {
	k, err := s.scripts.twin(c.Policy)
	if err != nil {
		return nil, nil, err
	}
	cost := clamp(c.Cost)
	if c.Mode == store.Strike {
		cost = 0
	}
	if cost == 1 {
		return k.one, appendParams(args, k, c.Policy), nil
	}
	return k.any, appendParams(append(args, cost, clamp(c.AgeMicros())), k, c.Policy), nil
}

func appendParams(args []any, k *known, p *algorithms.Policy) []any {
	for _, n := range p.Params()[:k.Params] {
		args = append(args, n)
	}
	return args
}

// clamp keeps n where a double holds every whole number. No capacity and no life
// time is larger, so that no decision changes.
func clamp(n int64) int64 { return max(-1<<53, min(1<<53, n)) }
