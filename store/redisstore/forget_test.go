package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// forgetting are charges that forget a key under these policies.
func forgetting(key string, ps ...*algorithms.Policy) (charges []store.Charge) {
	for _, p := range ps {
		charges = append(charges, store.Charge{Policy: p, Key: key, Mode: store.Forget})
	}
	return charges
}

// onBoth runs a test on a miniredis and on a Redis.
func onBoth(t *testing.T, test func(s *server)) {
	t.Run("miniredis", func(t *testing.T) {
		clock := storetest.NewClock()
		test(newServer(t, clock, redistest.Mini(t, clock).Addr()))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		clock := storetest.NewClock()
		test(newServer(t, clock, redistest.StartAt(t, clock).Addr))
	})
}

// What is forgotten is gone, whatever it is kept as, and what is beside it stays
// as it is.
func TestForgottenKeysAreGone(t *testing.T) {
	onBoth(t, func(s *server) {
		full := gcra(s.T, "full", algorithms.PerDay(1))
		for _, a := range append(casetest.Algorithms(), window{}) {
			name := casetest.Form(a)
			s.do("FLUSHALL")
			p := s.policy(a, algorithms.PerDay(3))
			dump := func() string { return fmt.Sprint(s.content(keyOf(p)), s.life(keyOf(p))) }
			take := func(charges ...store.Charge) []algorithms.Result {
				s.Helper()
				rs := make([]algorithms.Result, len(charges))
				if err := s.store.Take(s.Context(), charges, rs); err != nil {
					s.Fatalf("%s: %v", name, err)
				}
				return rs
			}
			fresh := algorithms.Result{Limit: 3, Remaining: 3}
			for _, used := range []int64{1, 3} {
				mustTake(s.T, s.store, p, "k", used)
				mustTake(s.T, s.store, p, "l", 2)
				mustTake(s.T, s.store, full, "k", 1)
				before, others := dump(), len(s.keys())-1
				rs := take(append(forgetting("k", p), store.Charge{Policy: full, Key: "k", Cost: 1})...)
				if rs[0].Limited || rs[0].Remaining != 3-used || !rs[1].Limited || dump() != before {
					s.Errorf("%s: in a refused group %+v; the key is %q and was %q", name, rs, dump(), before)
				}
				if rs := take(forgetting("k", p)...); rs[0] != fresh || s.do("EXISTS", keyOf(p)) != int64(0) {
					s.Errorf("%s: %+v, and the key is there", name, rs)
				}
				if n := len(s.keys()); n != others {
					s.Errorf("%s: %d keys are left of %d", name, n, others)
				}
				// With others, and when there is nothing to forget.
				mustTake(s.T, s.store, p, "k", used)
				rs = take(append(forgetting("l", p), forgetting("k", p, full)...)...)
				if rs[0] != fresh || rs[1] != fresh || rs[2] != (algorithms.Result{Limit: 1, Remaining: 1}) || len(s.keys()) != 0 {
					s.Errorf("%s: %+v, and there is %q", name, rs, s.keys())
				}
				if rs := take(forgetting("k", p)...); rs[0] != fresh || len(s.keys()) != 0 {
					s.Errorf("%s: a key never seen: %+v, and there is %q", name, rs, s.keys())
				}
			}
		}
	})
}

// What is no state is an error, and stays where it is with all of the group.
func TestForeignDataIsNotForgotten(t *testing.T) {
	onBoth(t, func(s *server) {
		p, q := gcra(s.T, "p", algorithms.PerMinute(3)), gcra(s.T, "q", algorithms.PerMinute(3))
		log, err := algorithms.NewPolicy("log", algorithms.SlidingLog{}, algorithms.PerMinute(3))
		if err != nil {
			s.Fatal(err)
		}
		for i, c := range []struct {
			p   *algorithms.Policy
			put []any
		}{
			{p, []any{"RPUSH", "", "1"}}, {p, []any{"HSET", "", "1", "2"}}, {p, []any{"SET", "", "abc"}}, {p, []any{"SET", "", "1 2"}},
			{log, []any{"RPUSH", "", "1"}}, {log, []any{"HSET", "", "1", "2"}}, {log, []any{"SET", "", "1 2 3"}},
		} {
			s.do("FLUSHALL")
			mustTake(s.T, s.store, q, "k", 2)
			c.put[1] = keyOf(c.p)
			s.do(c.put...)
			before := fmt.Sprint(s.content(keyOf(c.p)), s.content(keyOf(q)))
			for _, charges := range [][]store.Charge{
				forgetting("k", c.p), forgetting("k", q, c.p), append(forgetting("k", c.p), store.Charge{Policy: q, Key: "k", Cost: 1}),
			} {
				err := s.store.Take(s.Context(), charges, make([]algorithms.Result, len(charges)))
				if err == nil || !strings.Contains(err.Error(), "WEIRSTATE ") && !strings.Contains(err.Error(), "WRONGTYPE ") {
					s.Errorf("%d: error %v", i, err)
				}
			}
			if after := fmt.Sprint(s.content(keyOf(c.p)), s.content(keyOf(q))); after != before {
				s.Errorf("%d: there is %q, before %q", i, after, before)
			}
		}
	})
}

// To forget is one command, alone and in a group; to a server that does not know
// the script, two. It is not sent again where the reply is lost: what has been
// taken since would be forgotten too.
func TestForgetIsOneCommand(t *testing.T) {
	r := newRig(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := r.open(t, k, never)
			for n := 1; n <= 2; n++ {
				ps := some(t, n)
				take := func() error {
					for _, p := range ps {
						mustTake(t, r.direct, p, "k", 3)
					}
					return s.Take(t.Context(), forgetting("k", ps...), make([]algorithms.Result, n))
				}
				wants := func(what string, sha, text int, err error) {
					t.Helper()
					if a, b := r.count("evalsha"), r.count("eval"); a != sha || b != text {
						t.Errorf("%d, %s: %d EVALSHA and %d EVAL, %v", n, what, a, b, err)
					}
					for _, p := range ps {
						if used := r.charged(t, p, "k"); used != 0 {
							t.Errorf("%d, %s: %d units are left", n, what, used)
						}
					}
				}
				if err := take(); err != nil { // by then the script is known
					t.Fatal(err)
				}
				r.meet(t, nil)
				err := take()
				if wants("known", 1, 0, err); err != nil {
					t.Error(err)
				}
				if err := r.client.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				r.meet(t, nil)
				err = take()
				if wants("not known", 1, 1, err); err != nil {
					t.Error(err)
				}
				r.meet(t, always(lose))
				err = take()
				if wants("lost", 1, 0, err); err == nil {
					t.Error("the reply is lost: no error")
				}
				r.meet(t, nil)
			}
		})
	}
}

// On a cluster, without a tag, all of one key is forgotten as one; that of two is
// told before anything is sent.
func TestForgetOnACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.ClusterAt(t, storetest.NewClock())
	client := clusterClient(t, nodes)
	s := spread(t, client, nodes, redisstore.Config{})
	a, b := gcra(t, "a", algorithms.PerMinute(3)), gcra(t, "b", algorithms.PerMinute(2))
	for _, key := range []string{"x", "{y}", "z"} {
		if _, err := takeGroup(s, key, a, b); err != nil {
			t.Fatal(err)
		}
		rs := make([]algorithms.Result, 2)
		if err := s.Take(t.Context(), forgetting(key, a, b), rs); err != nil || rs[0].Remaining != 3 || rs[1].Remaining != 2 {
			t.Errorf("%s: %+v, %v", key, rs, err)
		}
	}
	for _, n := range nodes {
		if keys := n.Do(t, "DBSIZE"); keys != int64(0) {
			t.Errorf("a server has %v keys", keys)
		}
	}
	before := s.calls(t, "eval", "evalsha")
	err := s.Take(t.Context(), append(forgetting("x", a), forgetting("z", a)...), make([]algorithms.Result, 2))
	if !errors.Is(err, redisstore.ErrCrossSlot) || s.calls(t, "eval", "evalsha") != before {
		t.Errorf("two keys: %v", err)
	}
	// One by one it can be done.
	q := store.Sequential(s)
	mustTake(t, s, a, "x", 3)
	mustTake(t, s, a, "z", 3)
	if err := q.Take(t.Context(), append(forgetting("x", a), forgetting("z", a)...), make([]algorithms.Result, 2)); err != nil {
		t.Error(err)
	}
	wantPasses(t, s, a, "x", true, true, true, false)
	wantPasses(t, s, a, "z", true, true, true, false)
}

// A server that is full forgets all the same, and all of a group is made or
// nothing; others refuse, and forget nothing.
func TestForgetOnAServerThatRefusesWrites(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end []any
		prefix     string
	}{
		"full":         {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}, ""},
		"a replica":    {[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, "READONLY "},
		"few replicas": {[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}, "NOREPLICAS "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := redistest.StartAt(t, storetest.NewClock(), "--maxmemory-policy", "noeviction")
			s := newStore(t, node.Addr, redisstore.Config{})
			p, q, r := gcra(t, "p", algorithms.PerMinute(3)), gcra(t, "q", algorithms.PerMinute(3)), gcra(t, "r", algorithms.PerMinute(3))
			mustTake(t, s, p, "k", 3)
			mustTake(t, s, q, "first", 1)
			mustTake(t, s, q, "last", 1)
			node.Do(t, c.begin...)
			err := s.Take(t.Context(), forgetting("k", p), make([]algorithms.Result, 1))
			if n := node.Do(t, "EXISTS", keyOf(p)).(int64); c.prefix == "" && (err != nil || n != 0) || c.prefix != "" && (!redis.HasErrorPrefix(err, c.prefix) || n != 1) {
				t.Errorf("%v; %d keys are left", err, n)
			}
			for key, charges := range map[string][]store.Charge{
				"first": append(forgetting("first", q), store.Charge{Policy: r, Key: "first", Cost: 1}),
				"last":  append([]store.Charge{{Policy: r, Key: "last", Cost: 1}}, forgetting("last", q)...),
			} {
				err := s.Take(t.Context(), charges, make([]algorithms.Result, 2))
				left, made := node.Do(t, "EXISTS", "weir:{"+key+"}:q:gcra"), node.Do(t, "EXISTS", "weir:{"+key+"}:r:gcra")
				if err == nil && (c.prefix != "" || left != int64(0) || made != int64(1)) || err != nil && (left != int64(1) || made != int64(0)) {
					t.Errorf("a group that forgets %s: %v; %v keys not forgotten, %v charged", key, err, left, made)
				}
			}
			node.Do(t, c.end...)
		})
	}
}
