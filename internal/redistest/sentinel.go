package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Watched is a master and its two replicas, which a Redis Sentinel watches.
type Watched struct {
	Name      string   // of the master, to the sentinel
	Sentinels []string // addresses
	servers   []*Server
	sentinel  *redis.SentinelClient
}

// Sentinel starts a master, two replicas and one sentinel, whose word is enough and
// which takes a master for dead after half a second.
func Sentinel(t testing.TB) *Watched {
	t.Helper()
	w := &Watched{Name: "weir", servers: []*Server{Start(t)}}
	master := w.servers[0]
	host, port, _ := net.SplitHostPort(master.Addr)
	for range 2 {
		replica := Start(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
		w.servers = append(w.servers, replica)
		c := replica.Client(t)
		if err := poll(func() error { return says(c, "replication", "master_link_status:up") }); err != nil {
			t.Fatalf("a replica does not follow: %v", err)
		}
	}
	s := start(t, nil, program{func(dir string, port2 int) []string {
		conf := filepath.Join(dir, "sentinel.conf") // the sentinel writes to it
		text := fmt.Sprintf("port %[1]d\nbind 127.0.0.1\ndir %[2]s\nsentinel monitor %[3]s %[4]s %[5]s 1\n"+
			"sentinel down-after-milliseconds %[3]s 500\nsentinel failover-timeout %[3]s 1000\n", port2, dir, w.Name, host, port)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{conf, "--sentinel"}
	}, "+monitor master"})
	w.Sentinels = []string{s.Addr}
	w.sentinel = redis.NewSentinelClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = w.sentinel.Close() })
	err := poll(func() error {
		replicas, err := w.sentinel.Replicas(context.Background(), w.Name).Result()
		if err != nil || len(replicas) != 2 {
			return fmt.Errorf("replicas %v, %v", replicas, err)
		}
		for _, r := range replicas {
			if r["master-link-status"] != "ok" {
				return fmt.Errorf("replica %v", r)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the sentinel does not know the replicas: %v", err)
	}
	return w
}

// Master is who the sentinel says the master is.
func (w *Watched) Master(t testing.TB) *Server {
	t.Helper()
	addr, err := w.sentinel.GetMasterAddrByName(context.Background(), w.Name).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range w.servers {
		if s.Addr == net.JoinHostPort(addr[0], addr[1]) {
			return s
		}
	}
	t.Fatalf("the master is %v, which is none of ours", addr)
	return nil
}

// KillMaster kills the master and waits until a replica is the master, by its
// own word too.
func (w *Watched) KillMaster(t testing.TB) {
	t.Helper()
	before := w.Master(t)
	before.Stop()
	w.Await(t, before)
}

// Failover has the sentinel make a replica the master, and waits until it is.
func (w *Watched) Failover(t testing.TB) {
	t.Helper()
	before := w.Master(t)
	if err := w.sentinel.Failover(context.Background(), w.Name).Err(); err != nil {
		t.Fatal(err)
	}
	w.Await(t, before)
}

// Await waits until another than before is the master, by its own word too.
func (w *Watched) Await(t testing.TB, before *Server) {
	t.Helper()
	err := poll(func() error {
		now := w.Master(t)
		if now == before {
			return fmt.Errorf("the master is still %s", before.Addr)
		}
		return says(now.Client(t), "replication", "role:master")
	})
	if err != nil {
		t.Fatalf("no fail-over: %v", err)
	}
}

// says tells whether a section of INFO has a line.
func says(c *redis.Client, section, line string) error {
	info, err := c.Info(context.Background(), section).Result()
	if err == nil && !strings.Contains(info, line+"\r\n") {
		err = fmt.Errorf("no %s:\n%s", line, info)
	}
	return err
}

// Servers are the first master and its replicas.
func (w *Watched) Servers() []*Server { return w.servers }
