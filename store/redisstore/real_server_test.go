package redisstore_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// personal is a key that must not show in an error.
const personal = "+12025550142"

// A server that does not decide, for whatever reason, gives failures of the store
// without a word of the key, and has then charged nothing. It is sent no command
// more often than docs/redis.md says. When it decides again all goes on where it
// stopped, with the same store and the same client.
func TestServerThatDoesNotDecide(t *testing.T) {
	for _, c := range []trouble{
		{name: "LOADING", errs: []string{"LOADING "}, sent: 1,
			// Each key takes it 5 ms, until the end, and it answers after each.
			args:    []string{"--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no"},
			prepare: doing("EVAL", "for i = 1, 4000 do redis.call('SET', 'other' .. i, string.rep('x', 1024)) end", 0),
			begin:   func(n *node) { n.do("SAVE"); n.restart() },
			end:     doing("CONFIG", "SET", "key-load-delay", "0")},
		{name: "READONLY", errs: []string{"READONLY "}, sent: 1, looks: true,
			begin: doing("REPLICAOF", "127.0.0.1", "1"), end: doing("REPLICAOF", "NO", "ONE")},
		{name: "MASTERDOWN", errs: []string{"MASTERDOWN "}, sent: 1, args: []string{"--replica-serve-stale-data", "no"},
			begin: doing("REPLICAOF", "127.0.0.1", "1"), end: doing("REPLICAOF", "NO", "ONE")},
		{name: "NOREPLICAS", errs: []string{"NOREPLICAS "}, sent: 1, looks: true,
			begin: doing("CONFIG", "SET", "min-replicas-to-write", "1"), end: doing("CONFIG", "SET", "min-replicas-to-write", "0")},
		{name: "OOM", errs: []string{"OOM "}, sent: 1, looks: true, forgets: true, args: []string{"--maxmemory-policy", "noeviction"},
			begin: doing("CONFIG", "SET", "maxmemory", "1"), end: doing("CONFIG", "SET", "maxmemory", "0")},
		{name: "NOPERM for scripts", errs: []string{"NOPERM "}, sent: 1,
			begin: doing("ACL", "SETUSER", "default", "-evalsha", "-eval"), end: doing("ACL", "SETUSER", "default", "+@all")},
		{name: "NOPERM for keys", errs: []string{"NOPERM "}, sent: 1,
			begin: doing("ACL", "SETUSER", "default", "resetkeys", "~other:*"), end: doing("ACL", "SETUSER", "default", "allkeys")},
		{name: "a script's command is not allowed", errs: []string{"The user executing the script"}, sent: 1,
			begin: doing("ACL", "SETUSER", "default", "-get", "-zcard", "-del", "-unlink"), end: doing("ACL", "SETUSER", "default", "+@all")},
		{name: "NOAUTH", errs: []string{"NOAUTH ", "Protocol error: unauthenticated", "EOF"}, sent: 1,
			begin: doing("CONFIG", "SET", "requirepass", "secret"), cut: true, end: doing("CONFIG", "SET", "requirepass", "")},
		{name: "WRONGPASS", errs: []string{"WRONGPASS "}, sent: 0, password: "old", args: []string{"--requirepass", "old"},
			begin: doing("CONFIG", "SET", "requirepass", "new"), cut: true, end: doing("CONFIG", "SET", "requirepass", "old")},
		// The server says why and closes the connection. The client, which has not
		// yet said who it is, may find only that.
		{name: "max clients", errs: []string{"max number of clients reached", "EOF", "write: ", "read: "}, sent: 0,
			begin: doing("CONFIG", "SET", "maxclients", "1"), cut: true, end: doing("CONFIG", "SET", "maxclients", "100")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, c)
			n.charge()
			n.want(true)
			if c.prepare != nil {
				c.prepare(n)
			}
			before := n.do("DEBUG", "DIGEST")
			n.do("CONFIG", "RESETSTAT")
			c.begin(n)
			if c.cut {
				n.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			}
			n.want(false)
			if c.end != nil {
				c.end(n)
			}
			n.until(func(err error) bool { return err == nil })
			if most := n.takes * c.sent; n.sent() > most {
				t.Errorf("%d decisions were sent for %d calls; want at most %d", n.sent(), n.takes, most)
			}
			if after := n.do("DEBUG", "DIGEST"); !c.forgets && after != before {
				t.Error("keys have changed")
			}
			n.charge()
			n.spent()
		})
	}
}

// trouble is why a server does not decide.
type trouble struct {
	name, password string
	args           []string
	prepare        func(*node)
	begin, end     func(*node)
	cut            bool     // connections are cut when it begins
	errs           []string // how the errors begin
	sent           int      // commands for one call, at most
	looks, forgets bool     // what it does all the same
}

func doing(args ...any) func(*node) { return func(n *node) { n.do(args...) } }

// node is a server with a store on it, and a client that stays connected.
type node struct {
	*testing.T
	trouble
	server *redistest.Server
	admin  *redis.Client
	store  *redisstore.Store
	p, q   *algorithms.Policy
	log    *algorithms.Policy
	takes  int
}

func newNode(t *testing.T, c trouble) *node {
	t.Helper()
	s := redistest.Start(t, append([]string{"--enable-debug-command", "yes"}, c.args...)...)
	n := &node{T: t, trouble: c, server: s, p: lasting(t, "p", 5), q: lasting(t, "q", 5)}
	n.admin = closing(t, redis.NewClient(&redis.Options{Addr: s.Addr, Password: c.password, PoolSize: 1, MaxRetries: -1}))
	client := closing(t, redis.NewClient(&redis.Options{Addr: s.Addr, Password: c.password, DialerRetries: 1, ContextTimeoutEnabled: true}))
	var err error
	if n.store, err = redisstore.New(client, redisstore.Config{}); err != nil {
		t.Fatal(err)
	}
	if n.log, err = algorithms.NewPolicy("log", algorithms.SlidingLog{}, algorithms.PerDay(5)); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) do(args ...any) any {
	n.Helper()
	v, err := n.admin.Do(n.Context(), args...).Result()
	if err != nil && err != redis.Nil {
		n.Fatalf("%v: %v", args, err)
	}
	return v
}

// restart has the process begin anew, with what it has saved, and waits until it
// answers that it is not ready.
func (n *node) restart() {
	n.Helper()
	_ = n.admin.Do(n.Context(), "DEBUG", "RESTART").Err() // the connection ends
	n.until(func(err error) bool { return redis.HasErrorPrefix(err, "LOADING ") })
}

// until waits until the server answers so.
func (n *node) until(so func(error) bool) {
	n.Helper()
	n.soon("the server answers as it should", func() bool { return so(n.admin.DBSize(n.Context()).Err()) })
}

// soon waits for what other processes and goroutines do.
func (n *node) soon(what string, so func() bool) {
	n.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			n.Fatalf("not in 30 s: %s", what)
		}
	}
}

// charge makes two charges alone and two in a group, which must pass.
func (n *node) charge() {
	n.Helper()
	for range 2 {
		for key, ps := range map[string][]*algorithms.Policy{personal: {n.p}, personal + "-group": {n.q, n.log}} {
			if r, err := ask(n.Context(), n.store, key, ps...); err != nil || r.Limited {
				n.Errorf("%d policies: %+v, %v", len(ps), r, err)
			}
		}
	}
}

// spent wants one unit to be left after four charges, and takes it.
func (n *node) spent() {
	n.Helper()
	for key, ps := range map[string][]*algorithms.Policy{personal: {n.p}, personal + "-group": {n.q, n.log}} {
		for _, p := range ps {
			wantPasses(n, n.store, p, key, true, false)
		}
	}
}

// want makes calls of all kinds, twice, and wants what the trouble says of them,
// or in good times that all succeed. What is charged is given back.
func (n *node) want(good bool) {
	n.Helper()
	const group = personal + "-group"
	for _, c := range []struct {
		name    string
		charges []store.Charge
		works   bool
	}{
		{"a charge", []store.Charge{{Policy: n.p, Key: personal, Cost: 1}}, false},
		{"a give-back", []store.Charge{{Policy: n.p, Key: personal, Cost: -1}}, false},
		{"a look", []store.Charge{{Policy: n.p, Key: personal}}, n.looks},
		{"a charge of a new key", []store.Charge{{Policy: n.p, Key: personal + "-new", Cost: 1}}, false},
		{"a give-back to a new key", []store.Charge{{Policy: n.p, Key: personal + "-new", Cost: -1}}, n.looks},
		{"a group", []store.Charge{{Policy: n.q, Key: group, Cost: 1}, {Policy: n.log, Key: group, Cost: 1}, {Policy: n.p, Key: group, Cost: 1}}, false},
		{"its give-back", []store.Charge{{Policy: n.q, Key: group, Cost: -1}, {Policy: n.log, Key: group, Cost: -1}, {Policy: n.p, Key: group, Cost: -1}}, false},
		{"a group of looks", []store.Charge{{Policy: n.q, Key: group}, {Policy: n.log, Key: group}}, n.looks},
		{"a forgotten key", []store.Charge{{Policy: n.p, Key: personal + "-old", Mode: store.Forget}}, n.forgets || n.looks},
	} {
		for range 2 {
			results := make([]algorithms.Result, len(c.charges))
			err := n.store.Take(n.Context(), c.charges, results)
			n.takes++
			switch {
			case good || c.works:
				if err != nil || slices.ContainsFunc(results, func(r algorithms.Result) bool { return r.Limited }) {
					n.Errorf("%s: %+v, %v", c.name, results, err)
				}
			case !n.expects(err) || !store.IsFailure(n.Context(), err) || strings.Contains(err.Error(), personal[3:]):
				n.Errorf("%s: %+v, %v", c.name, results, err)
			case slices.ContainsFunc(results, func(r algorithms.Result) bool { return r != algorithms.Result{} }):
				n.Errorf("%s: an error, and an answer: %+v", c.name, results)
			}
			if good {
				break
			}
		}
	}
	if good {
		n.takes = 0
	}
}

// expects tells whether an error is the trouble's.
func (n *node) expects(err error) bool {
	return slices.ContainsFunc(n.errs, func(begin string) bool {
		return redis.HasErrorPrefix(err, begin) || err != nil && strings.Contains(err.Error(), ": "+begin)
	})
}

// sent is how many decisions the server was sent, and ran or refused.
func (n *node) sent() int {
	n.Helper()
	total := 0
	for _, m := range sentScripts.FindAllStringSubmatch(n.do("INFO", "commandstats").(string), -1) {
		for _, digits := range m[1:] {
			count, _ := strconv.Atoi(digits)
			total += count
		}
	}
	return total
}

var sentScripts = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+),.*rejected_calls=(\d+)`)
