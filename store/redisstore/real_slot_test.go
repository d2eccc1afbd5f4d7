package redisstore_test

import (
	"net"
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
	"github.com/weirgo/weir/store/storetest"
)

// moving is a slot of a cluster on its way from one node to another.
type moving struct {
	*testing.T
	nodes    redistest.Nodes
	slot     any
	from, to int
}

// move finds out where the slot of a tag is.
func move(t *testing.T, nodes redistest.Nodes, tag string) *moving {
	t.Helper()
	m := &moving{T: t, nodes: nodes, slot: nodes[0].Do(t, "CLUSTER", "KEYSLOT", tag)}
	m.from = int(m.slot.(int64)) * len(nodes) / 16384
	m.to = (m.from + 1) % len(nodes)
	return m
}

func (m *moving) begin() {
	m.Helper()
	m.nodes[m.to].Do(m, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.nodes[m.from].Do(m, "CLUSTER", "MYID"))
	m.nodes[m.from].Do(m, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.nodes[m.to].Do(m, "CLUSTER", "MYID"))
}

// keys are those that have not been moved.
func (m *moving) keys() (names []string) {
	m.Helper()
	for _, name := range m.nodes[m.from].Do(m, "CLUSTER", "GETKEYSINSLOT", m.slot, 1000).([]any) {
		names = append(names, name.(string))
	}
	return names
}

func (m *moving) migrate(name string) {
	m.Helper()
	host, port, _ := net.SplitHostPort(m.nodes[m.to].Addr)
	// A key that has ended meanwhile is no error.
	if v := m.nodes[m.from].Do(m, "MIGRATE", host, port, name, 0, 10_000); v != "OK" && v != "NOKEY" {
		m.Errorf("MIGRATE: %v", v)
	}
}

// end moves what is left, and gives the slot to its new node.
func (m *moving) end() {
	m.Helper()
	for names := m.keys(); len(names) > 0; names = m.keys() {
		for _, name := range names {
			m.migrate(name)
		}
	}
	id := m.nodes[m.to].Do(m, "CLUSTER", "MYID")
	for _, i := range []int{m.to, m.from, 3 - m.from - m.to} {
		m.nodes[i].Do(m, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
	}
	m.from, m.to = m.to, (m.to+1)%len(m.nodes)
}

// A cluster whose slots are on their way, or missing.
func TestClusterInTrouble(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	nodes := redistest.ClusterAt(t, clock, "--enable-debug-command", "yes")
	client := clusterClient(t, nodes)
	t.Run("CLUSTERDOWN", func(t *testing.T) { slotsAreMissing(t, spread(t, client, nodes, redisstore.Config{}), nodes, clock) })
	t.Run("a slot moves", func(t *testing.T) { slotMoves(t, spread(t, client, nodes, redisstore.Config{Tag: "t"}), nodes, clock) })
	t.Run("a slot moves under load", func(t *testing.T) {
		slotMovesUnderLoad(t, spread(t, client, nodes, redisstore.Config{Tag: "u"}), nodes)
	})
}

// While a slot moves, what is on one node is decided there, and what is not is a
// failure of the store. What is decided moves with its key.
func slotMoves(t *testing.T, s spreadStore, nodes redistest.Nodes, clock *storetest.Clock) {
	m := move(t, nodes, "{t}")
	p, q := gcra(t, "p", algorithms.PerDay(9)), gcra(t, "q", algorithms.PerDay(9))
	log, err := algorithms.NewPolicy("log", algorithms.SlidingLog{}, algorithms.PerDay(9))
	if err != nil {
		t.Fatal(err)
	}
	name := func(key string, p *algorithms.Policy) string { return "weir:{t}:" + key + ":" + p.ID() }
	take := func(left int64, most int, key string, ps ...*algorithms.Policy) {
		t.Helper()
		before := s.calls(t, "eval", "evalsha")
		rs, err := takeGroup(s, key, ps...)
		if sent := s.calls(t, "eval", "evalsha") - before; sent > most {
			t.Errorf("%s: %d decisions were sent", key, sent)
		}
		for _, r := range rs {
			if err != nil || r.Limited || r.Remaining != left {
				t.Errorf("%s: %+v, %v; want %d left", key, rs, err, left)
			}
		}
	}
	fails := func(charges ...store.Charge) {
		t.Helper()
		before := s.calls(t, "eval", "evalsha")
		err := s.Take(t.Context(), charges, make([]algorithms.Result, len(charges)))
		if !redis.HasErrorPrefix(err, "TRYAGAIN ") || !store.IsFailure(t.Context(), err) || strings.Contains(err.Error(), charges[0].Key) {
			t.Errorf("%+v: %v", charges, err)
		}
		if sent := s.calls(t, "eval", "evalsha") - before; sent > 2 {
			t.Errorf("%+v: %d decisions were sent", charges, sent)
		}
	}
	for _, key := range []string{"split", "here", "moved"} {
		take(8, 4, key, p, q, log) // the first time with the scripts
		take(7, 1, key, p, q, log)
		take(6, 2, key, p)
		take(6, 2, key, q)
		take(6, 4, key, log)
	}
	// A limit that was made shorter: nothing in this log counts any more.
	brief, err := algorithms.NewPolicy("log", algorithms.SlidingLog{}, algorithms.PerSecond(9))
	if err != nil {
		t.Fatal(err)
	}
	take(8, 2, "brief", p, log) // the first time with this script
	clock.Advance(2 * time.Second)

	m.begin()
	take(5, 1, "split", p, q, log)
	// The script deletes such a log and makes it anew, which it may not here.
	if rs, err := takeGroup(s, "brief", p, brief); !redis.HasErrorPrefix(err, "Script attempted to access a non local key") || !store.IsFailure(t.Context(), err) {
		t.Errorf("%+v, %v", rs, err)
	}
	take(7, 1, "brief", p)
	for _, moved := range []string{name("split", q), name("moved", p), name("moved", q), name("moved", log)} {
		m.migrate(moved)
	}
	digest := func() (all [3]any) {
		for i, n := range nodes {
			all[i] = n.Do(t, "DEBUG", "DIGEST")
		}
		return all
	}
	before := digest()
	group := func(key string, ps ...*algorithms.Policy) (charges []store.Charge) {
		for _, p := range ps {
			charges = append(charges, store.Charge{Policy: p, Key: key, Cost: 1})
		}
		return charges
	}
	for range 3 {
		fails(group("split", p, q)...)
		fails(group("split", log, q)...)
		fails(forgetting("split", p, q)...)
		fails(append(group("here", p), group("moved", p)...)...)
		// New keys are on neither node, and a ban's is new until there is a strike.
		fails(group("new", p, q)...)
		fails(append(group("here", p), group("new", p)...)...)
	}
	if digest() != before {
		t.Error("keys have changed")
	}
	take(4, 1, "split", p)
	take(4, 4, "split", q) // one is sent on, and the other node does not know the script
	take(4, 1, "split", log)
	take(5, 1, "here", p, q, log)
	take(5, 6, "moved", p, q, log)
	take(4, 2, "moved", p)
	take(8, 2, "new", p)
	m.end()
	// Until the client hears of it, each command is sent on, and one that is not known
	// there is two.
	take(3, 4, "split", p, q, log)
	take(4, 4, "here", p, q, log)
	take(4, 4, "moved", q, log)
	take(7, 4, "new", p)
	take(8, 4, "brief", brief)
	for key, passes := range map[string]int{"split": 3, "here": 4, "moved": 4, "new": 7} {
		wantPasses(t, s, p, key, append(slices.Repeat([]bool{true}, passes), false)...)
		r := mustTake(t, s, p, key, 0)
		if life := nodes[m.from].Do(t, "PTTL", name(key, p)); life != r.ResetAfter.Milliseconds() {
			t.Errorf("%s lives on for %v ms; it is reset in %v", key, life, r.ResetAfter)
		}
	}
	if err := s.Take(t.Context(), forgetting("split", p, q, log), make([]algorithms.Result, 3)); err != nil {
		t.Error(err)
	}
	take(8, 4, "split", p, q, log)
}

// A cluster whose nodes lack slots decides nothing: not for keys of those slots,
// nor for others.
func slotsAreMissing(t *testing.T, s spreadStore, nodes redistest.Nodes, clock *storetest.Clock) {
	p, q := lasting(t, "p", 3), lasting(t, "q", 3)
	const keys = 50
	charge := func(passes ...bool) {
		t.Helper()
		for _, pass := range passes {
			for i := range keys {
				if rs, err := takeGroup(s, strconv.Itoa(i), p, q); err != nil || rs[0].Limited == pass || rs[1].Limited == pass {
					t.Errorf("key %d: %+v, %v; want pass %v", i, rs, err, pass)
				}
			}
		}
	}
	charge(true)
	// Of its third of the slots each node loses the first half.
	half := func(command string) {
		for i, n := range nodes {
			first, end := i*16384/3, (i+1)*16384/3
			n.Do(t, "CLUSTER", command, first, (first+end)/2)
		}
	}
	half("DELSLOTSRANGE")
	before, said := s.calls(t, "eval", "evalsha"), map[string]int{}
	for i := range keys {
		rs, err := takeGroup(s, strconv.Itoa(i), p, q)
		if !redis.HasErrorPrefix(err, "CLUSTERDOWN ") || !store.IsFailure(t.Context(), err) {
			t.Fatalf("key %d: %+v, %v", i, rs, err)
		}
		said[err.Error()]++
	}
	if sent := s.calls(t, "eval", "evalsha") - before; sent != keys {
		t.Errorf("%d decisions were sent for %d calls", sent, keys)
	}
	if len(said) != 2 {
		t.Errorf("%v; want one for slots that are lost, and one for the others", said)
	}
	half("ADDSLOTSRANGE")
	// A node is in no hurry to say that it is well: it takes some seconds.
	end := time.Now().Add(30 * time.Second)
	for i := 0; i < len(nodes); time.Sleep(time.Millisecond) {
		clock.Advance(100 * time.Millisecond)
		if strings.Contains(nodes[i].Do(t, "CLUSTER", "INFO").(string), "cluster_state:ok") {
			i++
		} else if time.Now().After(end) {
			t.Fatal("the cluster does not get well")
		}
	}
	charge(true, true, false)
}
