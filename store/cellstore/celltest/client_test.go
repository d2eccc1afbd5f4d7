package celltest_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"

	"github.com/weirgo/weir/store/cellstore/celltest"
)

func TestDatabases(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := w.dial(t)
	c.want(t, first, one...)
	c.want(t, next, one...)
	c.want(t, "+OK\r\n", "SELECT", "15")
	c.want(t, first, one...)
	c.want(t, "+OK\r\n", "SELECT", "0")
	c.want(t, answer([5]int64{0, 5, 2, -1, 30}), one...)
	c.want(t, "+OK\r\n", "SELECT", "16")
	c.want(t, "-ERR celltest: the database is none of 0 to 15\r\n", one...)
	w.dial(t).want(t, answer([5]int64{0, 5, 1, -1, 40}), one...)
}

func TestAuth(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.redis.RequireAuth("secret")
	c := w.dial(t)
	c.want(t, "-NOAUTH Authentication required.\r\n", one...)
	c.want(t, "-NOAUTH Authentication required.\r\n", "CL.THROTTLE", "\xff")
	c.want(t, "+OK\r\n", "AUTH", "secret")
	c.want(t, first, one...)
	c.do(t, "SUBSCRIBE", "news")
	c.want(t, "-ERR Can't execute 'cl.throttle': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT are allowed in this context\r\n", one...)
	if err := w.Aborted(); err != nil {
		t.Error(err)
	}
}

func TestMulti(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := w.dial(t)
	exec := func(want string, commands ...[]string) {
		t.Helper()
		c.want(t, "+OK\r\n", "MULTI")
		for _, args := range commands {
			c.want(t, "+QUEUED\r\n", args...)
		}
		c.want(t, want, "EXEC")
	}
	exec("*3\r\n"+first+next+"-Cell error: Store error: Couldn't parse as integer: \r\n", one, one, []string{"CL.THROTTLE", "k", "", "1", "1"})
	c.want(t, bulk(itoa(epoch.UnixNano()+20e9)), "GET", "k")

	c.want(t, "+OK\r\n", "MULTI")
	c.want(t, "+QUEUED\r\n", one...)
	c.want(t, "+OK\r\n", "DISCARD")
	c.want(t, answer([5]int64{0, 5, 2, -1, 30}), one...)

	// The command leaves what is watched alone, and is itself seen.
	c.want(t, "+OK\r\n", "WATCH", "k", "other")
	c.want(t, answer([5]int64{0, 5, 4, -1, 10}), "CL.THROTTLE", "k2", "4", "1", "10")
	exec("*1\r\n+PONG\r\n", []string{"PING"})
	c.want(t, "+OK\r\n", "WATCH", "k")
	w.dial(t).want(t, answer([5]int64{0, 5, 1, -1, 40}), one...)
	exec("*-1\r\n", []string{"PING"})
	c.want(t, "+OK\r\n", "WATCH", "k")
	c.want(t, answer([5]int64{0, 5, 0, -1, 50}), one...)
	exec("*-1\r\n", []string{"PING"})
}

func TestScript(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := w.dial(t)
	c.want(t, "+OK\r\n", "SELECT", "3")
	call := func(how string) []string {
		return []string{"EVAL", "return redis." + how + "('CL.THROTTLE', KEYS[1], unpack(ARGV))", "1", "k", "4", "1", "10"}
	}
	c.want(t, first, call("call")...)
	c.want(t, next, one...)
	c.want(t, answer([5]int64{0, 5, 2, -1, 30}), call("pcall")...)
	c.want(t, answer([5]int64{0, 5, 1, -1, 40}), one...)
	c.want(t, "-Cell error: Store error: Couldn't parse as integer: x\r\n", append(call("pcall")[:4], "x", "1", "1")...)
	// A key from a script runs out at the same time.
	for _, at := range []struct {
		d    time.Duration
		want int64
	}{{40*time.Second + 999_999, 1}, {40*time.Second + 1_000_000, 0}} {
		w.SetTime(epoch)
		c.do(t, "DEL", "k")
		for range 4 {
			c.do(t, call("call")...)
		}
		w.SetTime(epoch.Add(at.d))
		c.want(t, integer(at.want), "EXISTS", "k")
	}
}

// Where the whole server is ended, it is also from within a transaction, from a
// script, and without a listener.
func TestAbortsWithin(t *testing.T) {
	t.Parallel()
	list := []string{"RPUSH", "k", "a"}
	for name, commands := range map[string][][]string{
		"a script":      {list, {"EVAL", "return redis.pcall('CL.THROTTLE', 'k', 4, 1, 10)", "0"}},
		"a transaction": {list, {"MULTI"}, one, {"EXEC"}},
		"other values":  {{"SET", "k", "\xff"}, one},
		"a stream":      {{"XADD", "k", "*", "a", "b"}, one},
		"a sketch":      {{"PFADD", "k", "a"}, one},
		"a wrong count": {{"CL.THROTTLE", "\xff"}},
	} {
		t.Run(name, func(t *testing.T) {
			last := len(commands) - 1
			start(t).aborts(t, commands[:last], commands[last])
		})
	}
	t.Run("no listener", func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		defer m.Close()
		dial := func() client {
			c, err := m.Dial()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return client{proto.NewClient(c)}
		}
		c, other := dial(), dial()
		module, err := celltest.Register(m)
		if err != nil {
			t.Fatal(err)
		}
		c.want(t, ":1\r\n", list...)
		if reply, err := c.Do(one...); err == nil {
			t.Errorf("%q from a dead server", reply)
		}
		for range 100 {
			if reply, err := other.Do("PING"); err == nil {
				t.Fatalf("another client hears %q", reply)
			}
			other = dial()
		}
		if module.Aborted() == nil {
			t.Error("nothing is told")
		}
	})
}

// A server that is started again has its keys.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := w.dial(t)
	c.want(t, first, one...)
	w.aborts(t, nil, []string{"CL.THROTTLE", "\xff"})
	w.redis.Close()
	if err := w.redis.Restart(); err != nil {
		t.Fatal(err)
	}
	c = w.dial(t)
	if reply := c.do(t, one...); !strings.HasPrefix(reply, "-ERR unknown command `CL.THROTTLE`") {
		t.Errorf("%q without the module", reply)
	}
	if _, err := celltest.Register(w.redis); err != nil {
		t.Fatal(err)
	}
	c.want(t, next, one...)
}

// No unit is lost between commands, scripts, transactions and other commands.
func TestAtomic(t *testing.T) {
	t.Parallel()
	w := start(t)
	const workers, units = 8, 60
	take := []string{"CL.THROTTLE", "k", "1000000", "1000", "1"}
	w.dial(t).do(t, append(take, "1000")...)
	var wg sync.WaitGroup
	for worker := range workers {
		c := w.dial(t)
		wg.Go(func() {
			for range units {
				switch worker % 4 {
				case 0, 1:
					c.do(t, take...)
				case 2:
					c.do(t, "DECRBY", "k", "1000000")
				case 3:
					c.do(t, "MULTI")
					c.do(t, take...)
					c.do(t, "EXEC")
				}
			}
		})
	}
	wg.Wait()
	const left = 1000 + units*workers/2
	c := w.dial(t)
	c.want(t, bulk(itoa(epoch.UnixNano()+left*1e6)), "GET", "k")

	// Nor any time to live.
	for range workers {
		c := w.dial(t)
		wg.Go(func() {
			for range units {
				c.do(t, take...)
			}
		})
	}
	wg.Wait()
	c.want(t, integer(left+units*workers), "PTTL", "k")
}
