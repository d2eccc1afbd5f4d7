package main

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store/storetest"
)

// topology is what servers there are.
type topology uint8

const (
	single   topology = iota
	logged            // one that writes all to its disk
	timed             // one with a clock that can be set
	cluster           // three masters
	sentinel          // a master and two replicas under a sentinel
)

// bed is servers, each behind a proxy.
type bed struct {
	testing.TB
	kind    topology
	servers []*redistest.Server
	admin   []*redis.Client // past the proxies
	watched *redistest.Watched
	offset  atomic.Int64 // of a timed server's clock

	proxies []*toxiproxy.Proxy
	via     map[string]string // from the address of a server to that of its proxy
	open    atomic.Int64      // connections of clients
}

func newBed(t testing.TB, kind topology) *bed {
	redis.SetLogger(logger{}) // a trouble is no news here
	zerolog.SetGlobalLevel(zerolog.Disabled)
	b := &bed{TB: t, kind: kind, via: map[string]string{}}
	switch kind {
	case single:
		b.servers = []*redistest.Server{redistest.Start(t)}
	case logged:
		b.servers = []*redistest.Server{redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")}
	case timed:
		clock := storetest.NewClock()
		clock.Set(time.Now())
		b.servers = []*redistest.Server{redistest.StartAt(t, clock)}
		b.run(clock)
	case cluster:
		b.servers = redistest.Cluster(t, "--cluster-node-timeout", "500")
	case sentinel:
		b.watched = redistest.Sentinel(t)
		b.servers = b.watched.Servers()
	}
	proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for _, s := range b.servers {
		b.admin = append(b.admin, s.Client(t))
		p := toxiproxy.NewProxy(proxies, s.Addr, "127.0.0.1:0", s.Addr)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Stop)
		b.proxies = append(b.proxies, p)
		b.via[s.Addr] = p.Listen
	}
	return b
}

// logger is go-redis's, and says nothing.
type logger struct{}

func (logger) Printf(context.Context, string, ...any) {}

// run has a server's clock go on, as far off as it is set.
func (b *bed) run(clock *storetest.Clock) {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case now := <-tick.C:
				clock.Set(now.Add(time.Duration(b.offset.Load())))
			}
		}
	})
	b.Cleanup(func() { close(stop); done.Wait() })
}

// client is a client as docs/redis.md recommends it.
func (b *bed) client() redis.UniversalClient {
	const dial = 500 * time.Millisecond
	switch b.kind {
	case cluster:
		var addrs []string
		for _, s := range b.servers {
			addrs = append(addrs, s.Addr)
		}
		return redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addrs, Dialer: b.dial, DialTimeout: dial, DialerRetries: 1, ContextTimeoutEnabled: true,
		})
	case sentinel:
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: b.watched.Name, SentinelAddrs: b.watched.Sentinels,
			Dialer: b.dial, DialTimeout: dial, DialerRetries: 1, ContextTimeoutEnabled: true,
		})
	}
	return redis.NewClient(&redis.Options{
		Addr: b.servers[0].Addr, Dialer: b.dial, DialTimeout: dial, DialerRetries: 1, ContextTimeoutEnabled: true,
	})
}

// dial goes through the proxy of a server, and to a sentinel past all.
func (b *bed) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if proxy, ok := b.via[addr]; ok {
		addr = proxy
	}
	c, err := (&net.Dialer{Timeout: 500 * time.Millisecond}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	b.open.Add(1)
	return &counted{TCPConn: c.(*net.TCPConn), open: &b.open}, nil
}

// counted is a connection that takes itself off when it is closed.
type counted struct {
	*net.TCPConn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.TCPConn.Close()
}

// do sends a command to a server, past the proxy.
func (b *bed) do(i int, args ...any) {
	if err := b.admin[i].Do(context.Background(), args...).Err(); err != nil && err != redis.Nil {
		b.Fatalf("%v: %v", args, err)
	}
}

// toxic puts one in the way of all that comes from the first server, or goes to it,
// and gives back what takes it out.
func (b *bed) toxic(json string) func() {
	p := b.proxies[0]
	w, err := p.Toxics.AddToxicJson(strings.NewReader(json))
	if err != nil {
		b.Fatalf("%s: %v", json, err)
	}
	return func() {
		if err := p.Toxics.RemoveToxic(context.Background(), w.Name); err != nil {
			b.Fatalf("%s: %v", json, err)
		}
	}
}
