package redisstore_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// aclLine makes the user with the fewest rights that a store needs. It stands in
// docs/redis.md.
const aclLine = "ACL SETUSER limiter on >secret resetchannels ~weir:* +evalsha +eval +time +get +psetex +del +pttl +pexpire +zcard +zrange +zcount +zadd +zremrangebyrank +unlink"

// aclClusterLine adds what the client of a cluster asks: where the slots are,
// and, before each command until it is told, where commands have their keys.
const aclClusterLine = aclLine + " +cluster|slots +command"

func TestACL(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	node := redistest.StartAt(t, clock)
	t.Run("as documented", func(t *testing.T) {
		if err := everything(t, node, aclLine); err != nil {
			t.Error(err)
		}
	})
	rights := strings.Fields(aclLine)[3:]
	for _, right := range rights {
		if right == "resetchannels" { // takes rights away
			continue
		}
		t.Run("without "+right, func(t *testing.T) {
			less := strings.Join(slices.DeleteFunc(strings.Fields(aclLine), func(s string) bool { return s == right }), " ")
			if err := everything(t, node, less); err == nil {
				t.Errorf("%s is not needed", right)
			}
		})
	}
	t.Run("another prefix", func(t *testing.T) {
		if err := everything(t, node, strings.ReplaceAll(aclLine, "weir:", "other:")); err == nil || !redis.HasErrorPrefix(err, "NOPERM ") {
			t.Errorf("keys of another prefix: %v", err)
		}
	})
}

// A user that has fewer rights than documented gets failures of the store, and what
// a script had written before it came to the command in question stays written.
func TestACLThatStopsAScript(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	setUser(t, node, strings.ReplaceAll(aclLine, " +psetex", ""))
	s, err := redisstore.New(closing(t, redis.NewClient(&redis.Options{Addr: node.Addr, Username: "limiter", Password: "secret", ContextTimeoutEnabled: true})), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := algorithms.NewPolicy("log", algorithms.SlidingLog{}, algorithms.PerDay(3))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		rs, err := takeGroup(s, "k", log, lasting(t, "p", 3))
		if !redis.HasErrorPrefix(err, "The user executing the script can't run this command") || !store.IsFailure(t.Context(), err) {
			t.Errorf("%+v, %v", rs, err)
		}
		if look := mustTake(t, s, log, "k", 0); look.Remaining != 2-i {
			t.Errorf("after %d failures: %+v", i+1, look)
		}
	}
}

func TestACLOfCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.ClusterAt(t, storetest.NewClock())
	for _, c := range []struct {
		without string
		works   bool
		asks    bool // before each charge
	}{{"", true, false}, {" +cluster|slots", false, false}, {" +command", true, true}} {
		line := strings.Replace(aclClusterLine, c.without, "", 1)
		for _, n := range nodes {
			n.Do(t, "FLUSHALL")
			n.Do(t, "CONFIG", "RESETSTAT")
			n.Do(t, "ACL", "DELUSER", "limiter")
			setUser(t, n, line)
		}
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes.Addrs(), Username: "limiter", Password: "secret", ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		s := spread(t, client, nodes, redisstore.Config{})
		p := gcra(t, "p", algorithms.PerMinute(3))
		for i := range 30 {
			r, err := store.Take(t.Context(), s, p, strconv.Itoa(i), 1)
			if (err == nil) != c.works || c.works && r.Remaining != 2 {
				t.Fatalf("%s: %+v, %v", line, r, err)
			}
		}
		if n := s.calls(t, "command"); (n >= 30) != c.asks {
			t.Errorf("%s: the client asks %d times for 30 charges", line, n)
		}
	}
}

func setUser(t *testing.T, node *redistest.Server, line string) {
	t.Helper()
	var args []any
	for _, word := range strings.Fields(line) {
		args = append(args, word)
	}
	node.Do(t, args...)
}

// everything does all that a store does to a server, by a user that line makes:
// a script that the server has not seen, and one that it has; a charge, a
// refusal, a key that has lost its life time, what gives back the last of a key,
// and what forgets one; and the same of a log.
func everything(t *testing.T, node *redistest.Server, line string) error {
	t.Helper()
	node.Do(t, "FLUSHALL")
	node.Do(t, "SCRIPT", "FLUSH")
	node.Do(t, "ACL", "DELUSER", "limiter")
	setUser(t, node, line)
	client := redis.NewClient(&redis.Options{Addr: node.Addr, Username: "limiter", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, q := gcra(t, "p", algorithms.PerMinute(3)), gcra(t, "q", algorithms.PerHour(3))
	for i, passes := range []bool{true, true, true, false, false} {
		if i == 4 {
			node.Do(t, "PERSIST", "weir:{k}:p:gcra")
		}
		rs, err := takeGroup(s, "k", p, q)
		if err != nil {
			return err
		}
		if rs[0].Limited == passes {
			return fmt.Errorf("group %d: %+v", i+1, rs)
		}
	}
	one, err := takeGroup(s, "k", p)
	if err != nil || !one[0].Limited {
		return fmt.Errorf("alone: %+v, %w", one, err)
	}
	if back, err := store.Take(t.Context(), s, p, "k", -9); err != nil || back.Remaining != 3 {
		return fmt.Errorf("given back: %+v, %w", back, err)
	}
	log, err := algorithms.NewPolicy("p", algorithms.SlidingLog{}, algorithms.PerMinute(2))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ cost, left int64 }{{1, 1}, {1, 0}, {1, 0}, {-1, 1}, {-1, 2}} {
		r, err := store.Take(t.Context(), s, log, "k", c.cost)
		if err != nil {
			return err
		}
		if r.Remaining != c.left {
			return fmt.Errorf("log %d: %+v", i+1, r)
		}
	}
	for i, ps := range [][]*algorithms.Policy{{p}, {p, q}, {log}, {log, q}} {
		for _, p := range ps {
			if _, err := store.Take(t.Context(), s, p, "k", 1); err != nil {
				return err
			}
		}
		if err := s.Take(t.Context(), forgetting("k", ps...), make([]algorithms.Result, len(ps))); err != nil {
			return err
		}
		for _, p := range ps {
			if n := node.Do(t, "EXISTS", keyOf(p)); n != int64(0) {
				return fmt.Errorf("forgotten %d: %s is left", i+1, p.Name())
			}
		}
	}
	return nil
}
