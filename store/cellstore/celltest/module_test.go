package celltest_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weirgo/weir/store/cellstore/celltest"
)

// one is a unit of five, one in ten seconds, and what it is answered on a fresh key.
var (
	one   = []string{"CL.THROTTLE", "k", "4", "1", "10"}
	first = answer([5]int64{0, 5, 4, -1, 10})
	next  = answer([5]int64{0, 5, 3, -1, 20})
)

func TestRegister(t *testing.T) {
	t.Parallel()
	if _, err := celltest.Register(nil); err == nil {
		t.Error("no server: no error")
	}
	if _, err := celltest.Register(miniredis.NewMiniRedis()); err == nil {
		t.Error("a server that is not started: no error")
	}
	w := start(t)
	if _, err := celltest.Register(w.redis); err == nil {
		t.Error("twice: no error")
	}
}

// Without SetTime it is the real time; miniredis's SetTime is enough for the rest.
func TestTime(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	if _, err := celltest.Register(m); err != nil {
		t.Fatal(err)
	}
	c := (&world{redis: m, addr: m.Addr()}).dial(t)
	before := time.Now().UnixMicro()
	c.want(t, first, one...)
	got, _ := m.Get("k")
	if now, after := got[:16], time.Now().UnixMicro(); now < itoa(before+10e6) || now > itoa(after+10e6) {
		t.Errorf("the key holds %s, between %d and %d", got, before, after)
	}
	m.FlushAll()

	m.SetTime(epoch.Add(123_456_789))
	c.want(t, first, one...)
	c.want(t, bulk(itoa(epoch.UnixNano()+10e9+123_456_000)), "GET", "k")
	m.SetTime(epoch.Add(10 * time.Second))
	c.want(t, answer([5]int64{0, 5, 3, -1, 11}), one...)
	m.SetTime(epoch.Add(time.Minute))
	c.want(t, "$-1\r\n", "GET", "k")
}

// A key lives until after its last millisecond, by a clock that steps back, too.
func TestExpiry(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, db := range []string{"0", "15"} {
		c := w.dial(t)
		c.want(t, "+OK\r\n", "SELECT", db)
		w.SetTime(epoch.Add(900_000))
		c.want(t, first, one...)
		const end = 10*time.Second + time.Millisecond
		for _, at := range []struct {
			d    time.Duration
			left int64
		}{
			{900_000, 10_000}, {999_999, 10_000}, {1_000_000, 9_999}, {9 * time.Second, 1000}, {-time.Hour, 3_610_000},
			{end - 1_000_000, 0}, {end - 2, 0}, {end - 1, 0}, {0, 10_000}, {end, -2}, {0, -2},
		} {
			w.SetTime(epoch.Add(at.d))
			c.want(t, integer(at.left), "PTTL", "k")
		}
		w.SetTime(epoch)
	}
}

// What the key may hold: what Rust reads as a u64.
func TestValues(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := w.dial(t)
	now := itoa(epoch.UnixNano())
	for value, want := range map[string][5]int64{
		"0":                         {0, 5, 4, -1, 10},
		"+5":                        {0, 5, 4, -1, 10},
		now:                         {0, 5, 4, -1, 10},
		"+000" + now:                {0, 5, 4, -1, 10},
		"18446744073709551615":      {1, 5, 0, 16746744034, 16746744074},
		"+000018446744073709551615": {1, 5, 0, 16746744034, 16746744074},
	} {
		c.want(t, "+OK\r\n", "SET", "k", value)
		if got := c.do(t, one...); got != answer(want) {
			t.Errorf("the key held %s: %q, want %v", value, got, want)
		}
	}
}

// A text is a C string, and a reply is one line.
func TestErrorText(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for arg, want := range map[string]string{"a\x00b": "a", "a\r\nb\tc\r\n\n": "a  b\tc", "\u00a0": "\u00a0"} {
		c.want(t, "-Cell error: Store error: Couldn't parse as integer: "+want+"\r\n", "CL.THROTTLE", "k", arg, "1", "1")
	}
}

// Where a unit is a few microseconds, what is cut from it can make one less than
// none; and an interval has an end.
func TestFloats(t *testing.T) {
	t.Parallel()
	w := start(t)
	c := w.dial(t)
	c.want(t, answer([5]int64{0, 2, 0, -1, 0}), "CL.THROTTLE", "k", "1", "600000", "1", "2")
	w.SetTime(epoch.Add(100))
	c.want(t, answer([5]int64{1, 1, -1, 0, 0}), "CL.THROTTLE", "k", "0", "600000", "1")
	c.want(t, answer([5]int64{0, 1, 0, -1, 9223372037}), "CL.THROTTLE", "longest", "0", "1000000000", "9223372036854775807")
	c.want(t, answer([5]int64{1, 1, 0, -1, 0}), "CL.THROTTLE", "negative", "0", "-1", "6000000000", "0")

	// To a float, that much less a nanosecond is that much.
	c.want(t, answer([5]int64{0, 1, 0, -1, 20_000_000}), "CL.THROTTLE", "year", "0", "1", "20000000")
	w.SetTime(epoch.Add(101))
	c.want(t, answer([5]int64{1, 1, 0, 20_000_001, 20_000_001}), "CL.THROTTLE", "year", "0", "1", "20000000")
	// No life is too long to become longer.
	w.SetTime(epoch.Add(-time.Hour))
	w.SetTime(epoch)
	c.want(t, ":1\r\n", "EXISTS", "longest")
}

// A time to live of -1 ms is no time to live to the module API, and no error.
func TestRefundOfAMillisecond(t *testing.T) {
	t.Parallel()
	c := start(t).dial(t)
	for range 2 {
		c.want(t, answer([5]int64{0, 5, 6, -1, 0}), "CL.THROTTLE", "k", "4", "1000", "1", "-1")
		c.want(t, integer(-1), "PTTL", "k")
	}
	c.want(t, bulk(itoa(epoch.UnixNano()-1e6)), "GET", "k")
	c.want(t, expireError, "CL.THROTTLE", "k", "4", "1000", "1", "-2")
}
