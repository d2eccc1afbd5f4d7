package redisstore_test

import (
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// A server that does not take writes gives errors, neither denials nor passes,
// and writes nothing of a group; when it does again all goes on where it
// stopped, with the same store.
func TestServerThatRefusesWrites(t *testing.T) {
	for _, c := range []struct {
		name       string
		begin, end []any
		prefix     string
	}{
		// RL-05: a master is demoted, and connections stay open. The new master does
		// not answer, so that the server keeps what it has.
		{"RL-05", []any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, "READONLY "},
		// RL-12: it is full, and may not throw keys out.
		{"RL-12", []any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}, "OOM "},
		{"too few replicas", []any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}, "NOREPLICAS "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock()
			node := redistest.StartAt(t, clock, "--maxmemory-policy", "noeviction")
			s := newStore(t, node.Addr, redisstore.Config{})
			p, q := gcra(t, "p", algorithms.PerMinute(3)), gcra(t, "q", algorithms.PerMinute(3))
			wantPasses(t, s, p, "k", true)
			if _, err := takeGroup(s, "g", p, q); err != nil {
				t.Fatal(err)
			}
			before := contents(t, node)
			node.Do(t, c.begin...)
			for range 10 {
				r, err := store.Take(t.Context(), s, p, "k", 1)
				if !redis.HasErrorPrefix(err, c.prefix) || r != (algorithms.Result{}) {
					t.Errorf("a charge: %+v, %v", r, err)
				}
				for _, key := range []string{"g", "new"} {
					if rs, err := takeGroup(s, key, q, p); !redis.HasErrorPrefix(err, c.prefix) {
						t.Errorf("a group: %+v, %v", rs, err)
					}
				}
			}
			// A give-back of all deletes a key, which even a full server does: it must
			// then write the rest of the group too, or none.
			charges := []store.Charge{{Policy: q, Key: "g", Cost: -1}, {Policy: p, Key: "g", Cost: 1}}
			err := s.Take(t.Context(), charges, make([]algorithms.Result, 2))
			during := contents(t, node)
			node.Do(t, c.end...)
			switch {
			case err != nil && !maps.Equal(during, before):
				t.Errorf("%v, and there is %v; before %v", err, during, before)
			case err == nil:
				if a, b := mustTake(t, s, q, "g", 0), mustTake(t, s, p, "g", 0); a.Remaining != 3 || b.Remaining != 1 {
					t.Errorf("half a group is written: %+v, %+v", a, b)
				}
			}
			wantPasses(t, s, p, "k", true, true, false)
			wantPasses(t, s, p, "new", true, true, true, false)
		})
	}
}

// contents is what each key holds.
func contents(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range s.Do(t, "KEYS", "*").([]any) {
		all[key.(string)] = s.Do(t, "GET", key).(string)
	}
	return all
}
