package redisstore_test

import (
	"fmt"
	"strings"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store"
)

// What an algorithm has left under a key is not in the way of another, which finds
// the key new; forms of one algorithm share a state. What somebody has put there by
// hand is a failure of the store.
func anotherAlgorithm(s *server) {
	for _, a := range casetest.Algorithms() {
		for _, b := range casetest.Algorithms() {
			s.do("FLUSHALL")
			before, after := s.policy(a, algorithms.PerMinute(3)), s.policy(b, algorithms.PerMinute(3))
			wantPasses(s, s.store, before, "k", true, true, true, false)
			if a.Name() == b.Name() {
				wantPasses(s, s.store, after, "k", false)
			} else {
				wantPasses(s, s.store, after, "k", true, true, true, false)
			}
			wantPasses(s, s.store, before, "k", false)
		}
		p := s.policy(a, algorithms.PerMinute(3))
		for _, put := range [][]any{{"SET", keyOf(p), "abc"}, {"RPUSH", keyOf(p), "abc"}} {
			s.do("FLUSHALL")
			s.do(put...)
			for range 4 {
				if r, err := store.Take(s.Context(), s.store, p, "k", 1); !store.IsFailure(s.Context(), err) || r != (algorithms.Result{}) {
					s.Errorf("%s, %s: %+v, %v", casetest.Form(a), put[0], r, err)
				}
			}
			if kept := fmt.Sprint(s.content(keyOf(p))); strings.Trim(kept, "[]") != "abc" {
				s.Errorf("%s, %s: there is %q", casetest.Form(a), put[0], kept)
			}
		}
	}
}

func foreignData(s *server) {
	a, b, c := gcra(s, "a", algorithms.PerMinute(3)), gcra(s, "b", algorithms.PerMinute(3)), gcra(s, "c", algorithms.PerMinute(3))
	for what, put := range map[string][]any{
		"list":  {"RPUSH", "", "1 2 3"},
		"hash":  {"HSET", "", "1", "2"},
		"word":  {"SET", "", "abc"},
		"empty": {"SET", "", ""},
		"two":   {"SET", "", "1 2"},
		"four":  {"SET", "", "1 2 3 4"},
		"float": {"SET", "", "1.5 2 3"},
		"power": {"SET", "", "1e3 2 3"},
		"lines": {"SET", "", "1 2 3\n"},
	} {
		key := "+12025550142-" + what // a key may be personal, and stands in no error
		name := func(p *algorithms.Policy) string { return "weir:{" + key + "}:" + p.ID() }
		put[1] = name(b)
		s.do(put...)
		mustTake(s, s.store, a, key, 1)
		before := fmt.Sprintf("%v %v %v", s.content(name(a)), s.content(name(b)), s.life(name(b)))
		for range 4 {
			_, err := store.Take(s.Context(), s.store, b, key, 1)
			rs, groupErr := takeGroup(s.store, key, a, b, c)
			_, lookErr := store.Take(s.Context(), s.store, b, key, 0)
			_, backErr := store.Take(s.Context(), s.store, b, key, -1)
			for _, err := range []error{err, groupErr, lookErr, backErr} {
				if !store.IsFailure(s.Context(), err) || strings.Contains(err.Error(), key) {
					s.Errorf("%s: error %v; a group %+v", what, err, rs)
				}
			}
		}
		if after := fmt.Sprintf("%v %v %v", s.content(name(a)), s.content(name(b)), s.life(name(b))); after != before {
			s.Errorf("%s: written for a group with an error: %q, before %q", what, after, before)
		}
		if n := s.do("EXISTS", name(c)); n != int64(0) {
			s.Errorf("%s: a key was made for a group with an error", what)
		}
		// The keys beside it are as good as before.
		wantPasses(s, s.store, a, key, true, true, false)
	}
}
