package redisstore_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// A replica that takes over lacks the charges that had not come to it: as many
// more pass, and no more, whatever the algorithm. What it had is kept, with its
// life time.
func TestReplicaTakesOverWithLag(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	master := redistest.StartAt(t, clock, "--repl-diskless-sync-delay", "0")
	line := newLine(t, master.Addr)
	host, port, _ := net.SplitHostPort(line.addr)
	replica := redistest.StartAt(t, clock, "--replicaof", host+" "+port)
	client := closing(t, redis.NewClient(&redis.Options{Addr: master.Addr}))
	before, after := newStore(t, master.Addr, redisstore.Config{}), newStore(t, replica.Addr, redisstore.Config{})
	for end := time.Now().Add(30 * time.Second); !strings.Contains(replica.Do(t, "INFO", "replication").(string), "master_link_status:up"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the replica does not follow")
		}
	}
	const limit, seen, lost = 10, 3, 4
	var policies []*algorithms.Policy
	for _, a := range casetest.Algorithms() {
		p, err := algorithms.NewPolicy(strings.ReplaceAll(casetest.Form(a), ".", "-"), a, algorithms.PerDay(limit))
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	charge := func(units int64) {
		for _, p := range policies {
			if r := mustTake(t, before, p, "k", units); r.Limited {
				t.Fatalf("%s: %+v", p.Name(), r)
			}
		}
	}
	charge(seen)
	if n, err := client.Wait(t.Context(), 1, 30*time.Second).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas, %v", n, err)
	}
	line.stop()
	charge(lost)
	// Until it is promoted the replica refuses, and tells what it has.
	for _, p := range policies {
		if r, err := store.Take(t.Context(), after, p, "k", 1); !redis.HasErrorPrefix(err, "READONLY ") || !store.IsFailure(t.Context(), err) {
			t.Errorf("%s: %+v, %v", p.Name(), r, err)
		}
	}
	master.Stop()
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	for _, p := range policies {
		passed := int64(seen + lost)
		for range 2 * limit {
			if !mustTake(t, after, p, "k", 1).Limited {
				passed++
			}
		}
		if passed != limit+lost {
			t.Errorf("%s: %d passed of %d, and %d charges were lost", p.Name(), passed, limit, lost)
		}
		look := mustTake(t, after, p, "k", 0)
		if life := replica.Do(t, "PTTL", "weir:{k}:"+p.ID()); life != wholeMS(look.ResetAfter).Milliseconds() {
			t.Errorf("%s lives on for %v ms; it is reset in %v", p.Name(), life, look.ResetAfter)
		}
	}
}

// line is a connection that can be held up: what is sent then does not arrive.
type line struct {
	addr   string
	listen net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	conns   []net.Conn
	stopped bool
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &line{addr: l.Addr().String(), listen: l}
	n.wg.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			n.mu.Lock()
			n.conns = append(n.conns, from, server)
			n.mu.Unlock()
			n.wg.Go(func() { n.pass(from, server) })
			n.wg.Go(func() { n.pass(server, from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		n.stop()
		n.mu.Lock()
		for _, c := range n.conns {
			_ = c.Close()
		}
		n.mu.Unlock()
		n.wg.Wait()
	})
	return n
}

// pass hands on what comes, until the line is stopped.
func (n *line) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 1<<16)
	for {
		k, err := from.Read(buffer)
		n.mu.Lock()
		stopped := n.stopped
		if k > 0 && !stopped {
			_, _ = to.Write(buffer[:k])
		}
		n.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// stop lets nothing through any more. The ends don't see it.
func (n *line) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
}
