package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/store/storetest"
)

// Nodes are the servers of a Redis Cluster.
type Nodes []*Server

// Cluster starts a Redis Cluster of three masters without replicas that share
// all slots, each started with these arguments. It needs Redis 7.
func Cluster(t testing.TB, args ...string) Nodes {
	t.Helper()
	nodes := make(Nodes, 3)
	for i := range nodes {
		nodes[i] = start(t, nil, plain(node(t, args)))
	}
	nodes.form(t, func() {})
	return nodes
}

// ClusterAt is Cluster with nodes that live by clock, as StartAt's servers do.
func ClusterAt(t testing.TB, clock *storetest.Clock, args ...string) Nodes {
	t.Helper()
	// Nodes hold each other for dead after a time without an answer, and a test's
	// clock may jump by years.
	args = append([]string{"--cluster-node-timeout", "1000000000000000"}, args...)
	library := shim(t)
	nodes := make(Nodes, 3)
	now := clock.Now()
	for i := range nodes {
		nodes[i] = startAt(t, now, library, plain(node(t, args)))
	}
	// A master writes nothing for its first two seconds, which a clock that
	// stands still would make a long time.
	nodes.form(t, func() {
		now = now.Add(100 * time.Millisecond)
		for _, s := range nodes {
			setTime(t, s.time, now)
		}
	})
	nodes.Follow(t, clock)
	return nodes
}

// Follow has all nodes of ClusterAt live by another clock.
func (n Nodes) Follow(t testing.TB, clock *storetest.Clock) {
	t.Helper()
	for _, s := range n {
		s.Follow(t, clock)
	}
}

// Addrs are the addresses of all nodes.
func (n Nodes) Addrs() (addrs []string) {
	for _, s := range n {
		addrs = append(addrs, s.Addr)
	}
	return addrs
}

func node(t testing.TB, args []string) []string {
	t.Helper()
	return append([]string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(freePort(t))}, args...)
}

// form makes a cluster of the nodes, and calls wait until all say it is well.
func (n Nodes) form(t testing.TB, wait func()) {
	t.Helper()
	const slots = 16384
	for i, s := range n {
		s.Do(t, "CLUSTER", "ADDSLOTSRANGE", i*slots/len(n), (i+1)*slots/len(n)-1)
		for _, other := range n[:i] {
			host, port, _ := net.SplitHostPort(other.Addr)
			s.Do(t, "CLUSTER", "MEET", host, port, other.Do(t, "CONFIG", "GET", "cluster-port").(map[any]any)["cluster-port"])
		}
	}
	for _, s := range n {
		c := s.Client(t)
		err := poll(func() error {
			wait()
			info, err := c.ClusterInfo(context.Background()).Result()
			for _, want := range []string{"cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3", "cluster_size:3"} {
				if !strings.Contains(info, want+"\r\n") {
					return fmt.Errorf("no %s: %v\n%s", want, err, info)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("the cluster does not come up: %v", err)
		}
	}
}
