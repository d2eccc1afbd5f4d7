package celltest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"
	"go.uber.org/goleak"

	"github.com/weirgo/weir/store/cellstore/celltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.UnixMilli(1_700_000_000_000)

// world is a server with the module, whose clock stands at epoch.
type world struct {
	*celltest.Module
	redis *miniredis.Miniredis
	addr  string
}

func start(t testing.TB) *world {
	t.Helper()
	m := miniredis.RunT(t)
	module, err := celltest.Register(m)
	if err != nil {
		t.Fatal(err)
	}
	module.SetTime(epoch)
	return &world{module, m, m.Addr()}
}

// client reads replies as they are sent.
type client struct{ *proto.Client }

func (w *world) dial(t testing.TB) client {
	t.Helper()
	c, err := proto.Dial(w.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{c}
}

func (c client) do(t testing.TB, args ...string) string {
	t.Helper()
	reply, err := c.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return reply
}

// want holds a reply to what it should be.
func (c client) want(t testing.TB, want string, args ...string) {
	t.Helper()
	if got := c.do(t, args...); got != want {
		t.Errorf("%q: %q, want %q", args, got, want)
	}
}

// aborts holds a command to the end of the server, for all clients.
func (w *world) aborts(t *testing.T, setup [][]string, args []string) {
	t.Helper()
	c, other := w.dial(t), w.dial(t)
	other.want(t, "+PONG\r\n", "PING")
	for _, args := range setup {
		c.do(t, args...)
	}
	if err := w.Aborted(); err != nil {
		t.Errorf("before: %v", err)
	}
	if reply, err := c.Do(args...); err == nil {
		t.Errorf("%q: %q from a dead server", args, reply)
	}
	if reply, err := other.Do("PING"); err == nil {
		t.Errorf("another client hears %q", reply)
	}
	if again, err := proto.Dial(w.addr); err == nil {
		_ = again.Close()
		t.Error("a dead server takes connections")
	}
	if err := w.Aborted(); err == nil {
		t.Error("nothing is told")
	} else {
		t.Log(err)
	}
}

func itoa(n int64) string    { return strconv.FormatInt(n, 10) }
func integer(n int64) string { return ":" + itoa(n) + "\r\n" }
func bulk(s string) string   { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func answer(n [5]int64) string {
	return "*5\r\n" + integer(n[0]) + integer(n[1]) + integer(n[2]) + integer(n[3]) + integer(n[4])
}
