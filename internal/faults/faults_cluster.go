package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

var clusterFaults = []fault{
	{Name: "cluster: node stopped", What: "one of three masters stands still and goes on", on: cluster, strike: func(b *bed) func() {
		b.signal(0, syscall.SIGSTOP)
		return func() {
			b.signal(0, syscall.SIGCONT)
			b.whole()
		}
	}},
	{Name: "cluster: node killed", What: "one of three masters is killed (CLUSTERDOWN) and started without its data: its limits begin afresh", on: cluster, losses: 1, strike: func(b *bed) func() {
		restart := killed(b)
		return func() {
			restart()
			b.whole()
		}
	}},
	{Name: "cluster: node cut off", What: "clients can't reach one of three masters", on: cluster, strike: func(b *bed) func() {
		b.proxies[0].Stop()
		return func() { b.start(0) }
	}},
	{Name: "cluster: slots moving", What: "slots with keys move to another master, key by key (ASK, MOVED)", on: cluster, strike: moving},
}

// moving has the slots of all keys of the first node begin to move to the second, and
// then end it.
func moving(b *bed) func() {
	ctx := context.Background()
	keys, err := b.admin[0].Keys(ctx, "weir-*").Result()
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]string, len(b.servers))
	for i, c := range b.admin {
		if ids[i], err = c.Do(ctx, "CLUSTER", "MYID").Text(); err != nil {
			b.Fatal(err)
		}
	}
	slots := map[int64]bool{}
	for _, k := range keys {
		slots[b.admin[0].ClusterKeySlot(ctx, k).Val()] = true
	}
	for slot := range slots {
		b.do(1, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
		b.do(0, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
	}
	host, port, _ := net.SplitHostPort(b.servers[1].Addr)
	return func() {
		for slot := range slots {
			for {
				keys, err := b.admin[0].ClusterGetKeysInSlot(ctx, int(slot), 100).Result()
				if err != nil {
					b.Fatal(err)
				}
				if len(keys) == 0 {
					break
				}
				b.do(0, "MIGRATE", host, port, keys[0], 0, 5000)
			}
			for _, i := range []int{1, 0, 2} {
				b.do(i, "CLUSTER", "SETSLOT", slot, "NODE", ids[1])
			}
		}
	}
}

var sentinelFaults = []fault{
	{Name: "sentinel: master killed", What: "a replica takes over: charges that it has not got are lost", on: sentinel, losses: 1, strike: func(b *bed) func() {
		before := b.watched.Master(b)
		before.Stop()
		return func() { b.watched.Await(b, before) }
	}},
	{Name: "sentinel: master stopped", What: "a replica takes over, and then the old master goes on for a moment: until all clients know, each of the two lets a limit through", on: sentinel, losses: 1, split: true, strike: func(b *bed) func() {
		before := b.watched.Master(b)
		i := b.index(before.Addr)
		b.signal(i, syscall.SIGSTOP)
		return func() {
			b.watched.Await(b, before)
			b.signal(i, syscall.SIGCONT)
			b.until(i, "role:slave")
		}
	}},
	{Name: "sentinel: planned", What: "SENTINEL FAILOVER: charges that the new master has not got are lost, and until all clients know of it, each of the two lets a limit through", on: sentinel, losses: 1, split: true, strike: func(b *bed) func() {
		before := b.watched.Master(b)
		b.watched.Failover(b)
		return func() { b.until(b.index(before.Addr), "role:slave") }
	}},
}

func (b *bed) index(addr string) int {
	for i, s := range b.servers {
		if s.Addr == addr {
			return i
		}
	}
	b.Fatal("no server at " + addr)
	return -1
}

// until waits until a server says so of its replication.
func (b *bed) until(i int, line string) {
	b.wait(i, line, func(ctx context.Context) (string, error) { return b.admin[i].Info(ctx, "replication").Result() })
}

// whole waits until all nodes of a cluster say that it is well.
func (b *bed) whole() {
	for i, c := range b.admin {
		b.wait(i, "cluster_state:ok", func(ctx context.Context) (string, error) { return c.ClusterInfo(ctx).Result() })
	}
}

func (b *bed) wait(i int, line string, said func(context.Context) (string, error)) {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		text, err := said(context.Background())
		if err == nil && strings.Contains(text, line) {
			return
		}
		if time.Now().After(end) {
			b.Fatal(fmt.Sprint("server ", i, " does not say ", line, " in time: ", text, err))
		}
	}
}
