package histories

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// cutting fails some calls, whose charges are made all the same, or not, or later.
type cutting struct {
	store.Store
	calls atomic.Int64
	late  sync.WaitGroup
}

func (s *cutting) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch s.calls.Add(1) % 24 {
	case 0:
		return errCut
	case 8:
		_ = s.Store.Take(ctx, charges, results)
		return errCut
	case 16:
		charges, results := slices.Clone(charges), slices.Clone(results)
		s.late.Go(func() {
			for range 10 {
				runtime.Gosched()
			}
			_ = s.Store.Take(context.WithoutCancel(ctx), charges, results)
		})
		return errCut
	}
	return s.Store.Take(ctx, charges, results)
}

// What has failed was made once at most, at any time, or never.
func TestMemstoreWithFailures(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			forms(t, func(t *testing.T, groups bool) {
				b := memory(t, s, groups)
				cut := &cutting{Store: b.store}
				b.store, b.fails, b.settle = cut, isCut, cut.late.Wait
				b.all(t, count(100, 10))
			})
		})
	}
}

// cutConn breaks a connection now and then, just after a decision was sent on it:
// the server may have it, and may make it, but nobody hears the answer.
type cutConn struct {
	net.Conn
	sent *atomic.Int64 // decisions, on all connections
}

func (c cutConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b, []byte("evalsha")) && c.sent.Add(1)%15 == 0 {
		_ = c.Close()
	}
	return n, err
}

// Connections break after the charges were sent, and callers have no time: neither
// makes a charge twice, or half of a group.
func TestRedisWithFailures(t *testing.T) {
	t.Parallel()
	open := server(t)
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			forms(t, func(t *testing.T, groups bool) {
				var sent atomic.Int64
				b := open(t, s, groups, &redis.Options{
					Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
						c, err := new(net.Dialer).DialContext(ctx, network, addr)
						return cutConn{c, &sent}, err
					},
					// What may be sent again is sent at once.
					MinRetryBackoff: -1,
					MaxRetryBackoff: -1,
				})
				b.fails, b.hurry = isNetwork, true
				b.all(t, count(20, 5))
			})
		})
	}
}

// isNetwork tells whether an error is anything but the server's own word.
func isNetwork(err error) bool {
	var said redis.Error
	return !errors.As(err, &said)
}
