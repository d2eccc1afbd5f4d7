package keyfunc_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// counter counts requests by key against a limit. All requests of a case fall
// into one window, so the counts never go down.
type counter struct {
	key   keyfunc.Func
	limit int
	used  map[string]int
}

func newCounter(limit int, key keyfunc.Func) *counter {
	return &counter{key, limit, make(map[string]int)}
}

// decide gives the status and the key of a request.
func (c *counter) decide(r *http.Request) (int, string) {
	k, err := c.key(r)
	switch {
	case errors.Is(err, keyfunc.ErrNoKey):
		return http.StatusBadRequest, ""
	case err != nil:
		return http.StatusInternalServerError, ""
	case c.used[k] >= c.limit:
		return http.StatusTooManyRequests, k
	}
	c.used[k]++
	return http.StatusOK, k
}

// handler limits next.
func (c *counter) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, _ := c.decide(r); status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// want holds the statuses of the requests, in turn, and their keys unless keys
// is nil, against what is expected.
func (c *counter) want(t *testing.T, statuses []int, keys []string, requests ...*http.Request) {
	t.Helper()
	var gotStatuses []int
	var gotKeys []string
	for _, r := range requests {
		s, k := c.decide(r)
		gotStatuses, gotKeys = append(gotStatuses, s), append(gotKeys, k)
	}
	if !slices.Equal(gotStatuses, statuses) {
		t.Errorf("status %v, want %v (keys %q)", gotStatuses, statuses, gotKeys)
	}
	if keys != nil && !slices.Equal(gotKeys, keys) {
		t.Errorf("keys %q, want %q", gotKeys, keys)
	}
}

// TestCases holds this package to cases from other projects, where limiters
// took the wrong key. Each is named by its id.
func TestCases(t *testing.T) {
	ip := keyfunc.IP(keyfunc.Trust{})
	behindTen := keyfunc.IP(trust(t, "10.0.0.0/8"))

	t.Run("IP-01", func(t *testing.T) {
		const peer = "203.0.113.7"
		newCounter(3, ip).want(t, []int{200, 200, 200, 429, 429}, slices.Repeat([]string{peer}, 5),
			from(peer+":40001", "X-Forwarded-For: 198.51.100.1"),
			from(peer+":40002", "X-Real-IP: 198.51.100.2"),
			from(peer+":40003", "True-Client-IP: 198.51.100.3"),
			from(peer+":40004", "Forwarded: for=198.51.100.4"),
			from(peer+":40005", "X-Forwarded-For: 198.51.100.5"))
	})
	t.Run("IP-02", func(t *testing.T) {
		c := newCounter(2, behindTen)
		const victim, attacker = "198.51.100.20", "203.0.113.66"
		c.want(t, []int{200, 200, 429, 200}, []string{attacker, attacker, attacker, victim},
			from("10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20, 203.0.113.66"),
			from("10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20, 203.0.113.66"),
			from("10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20, 203.0.113.66"),
			from("10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20"))
		if left := c.limit - c.used[victim]; left != 1 {
			t.Errorf("remaining on the last: %d, want 1", left)
		}
	})
	t.Run("IP-03", func(t *testing.T) {
		newCounter(1, keyfunc.IP(trust(t, "127.0.0.1/32"))).want(t, []int{200, 429, 200},
			[]string{"203.0.113.8", "203.0.113.8", "198.51.100.1"},
			from("127.0.0.1:9000", "X-Forwarded-For: 198.51.100.1, 127.0.0.1", "X-Forwarded-For: 203.0.113.8"),
			from("127.0.0.1:9000", "X-Forwarded-For: 198.51.100.99, 127.0.0.1", "X-Forwarded-For: 203.0.113.8"),
			from("127.0.0.1:9000", "X-Forwarded-For: 198.51.100.1"))
	})
	t.Run("IP-04", func(t *testing.T) {
		newCounter(1, behindTen).want(t, []int{200}, []string{"203.0.113.9"},
			from("10.0.0.2:7000", "X-Forwarded-For: 10.0.0.5", "X-Forwarded-For: 203.0.113.9"))
	})
	t.Run("IP-06", func(t *testing.T) {
		newCounter(9, behindTen).want(t, []int{200, 200, 200, 200},
			[]string{"10.0.0.2", "198.51.100.7", "10.0.0.2", "10.0.0.2"},
			from("10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, garbage"),
			from("10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, ,"),
			from("10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, 999.1.1.1"),
			from("10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, unknown"))
	})
	t.Run("IP-07", func(t *testing.T) {
		newCounter(2, behindTen).want(t, []int{200, 200, 429, 200, 200, 429}, nil,
			from("10.0.0.2:7000", "X-Forwarded-For: 203.0.113.7"),
			from("10.0.0.2:7000", "X-Forwarded-For: 203.0.113.7:38792"),
			from("10.0.0.2:7000", "X-Forwarded-For: 203.0.113.7:38793"),
			from("10.0.0.2:7000", "X-Forwarded-For: [2001:db8::240]"),
			from("10.0.0.2:7000", "X-Forwarded-For: [2001:db8::240]:38792"),
			from("10.0.0.2:7000", "X-Forwarded-For: 2001:db8::240"))
	})
	t.Run("IP-08", func(t *testing.T) {
		requests := []*http.Request{from("@"), from(""), from("@", "X-Forwarded-For: 203.0.113.7")}
		newCounter(2, ip).want(t, []int{400, 400, 400}, []string{"", "", ""}, requests...)
		unix := keyfunc.IP(made(t, keyfunc.Proxies{Unix: true}))
		newCounter(2, unix).want(t, []int{400, 400, 200}, []string{"", "", "203.0.113.7"}, requests...)
	})
	t.Run("IP-09", func(t *testing.T) {
		newCounter(2, ip).want(t, []int{200, 200, 429, 200, 200, 429}, nil,
			from("203.0.113.7"), from("203.0.113.7:1234"), from("203.0.113.7"),
			from("2001:db8::1"), from("[2001:db8::1]:443"), from("2001:db8::1"))
	})
	t.Run("IP-10", func(t *testing.T) {
		values := []string{"23189987", `"invalid_ip`, "23189988", strings.Repeat("x", 300), "0"}
		for _, header := range []string{"X-Forwarded-For", "X-Real-IP"} {
			var requests []*http.Request
			for _, v := range values {
				requests = append(requests, from("10.0.0.2:7000", header+": "+v))
			}
			newCounter(3, behindTen).want(t, []int{200, 200, 200, 429, 429},
				slices.Repeat([]string{"10.0.0.2"}, 5), requests...)
		}
	})
	t.Run("IP-11", func(t *testing.T) {
		requests := slices.Repeat([]*http.Request{from("10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5")}, 6)
		newCounter(5, behindTen).want(t, []int{200, 200, 200, 200, 200, 429},
			slices.Repeat([]string{"10.0.0.2"}, 6), requests...)
	})

	t.Run("V6-01", func(t *testing.T) {
		c := newCounter(3, ip)
		c.want(t, []int{200, 200, 200, 429, 429, 200}, nil,
			from("[2001:db8:1:2::1]:443"), from("[2001:db8:1:2::2]:443"), from("[2001:db8:1:2::3]:443"),
			from("[2001:db8:1:2::4]:443"), from("[2001:db8:1:2::5]:443"), from("[2001:db8:1:3::1]:443"))
		if len(c.used) != 2 {
			t.Errorf("%d keys, want 2", len(c.used))
		}
	})
	t.Run("V6-02", func(t *testing.T) {
		newCounter(2, ip).want(t, []int{200, 200, 429, 200, 429}, nil,
			from("[::ffff:203.0.113.1]:1"), from("[::ffff:203.0.113.1]:2"), from("[::ffff:203.0.113.1]:3"),
			from("[::ffff:203.0.113.2]:1"), from("203.0.113.1:9"))
	})
	t.Run("V6-04", func(t *testing.T) {
		c := newCounter(2, ip)
		c.want(t, []int{200, 200, 429, 429}, nil,
			from("[2001:db8::a:b]:1"), from("[2001:0db8:0000:0000:0000:0000:000a:000b]:1"),
			from("[2001:DB8:0:0::c]:1"), from("[2001:db8::1]:1"))
		if len(c.used) != 1 {
			t.Errorf("%d keys, want 1", len(c.used))
		}
	})
	t.Run("V6-05", func(t *testing.T) {
		// Twice each: the same text gives the same key.
		requests := slices.Repeat([]*http.Request{
			from("[fe80::1%eth0]:4848"),
			from("[fe80::1%eth0.100]:4848"),
			from("10.0.0.2:1", "X-Forwarded-For: fe80::1%eth0, fe80::2%"+strings.Repeat("z", 64)),
		}, 2)
		newCounter(6, behindTen).want(t, []int{200, 200, 200, 200, 200, 200},
			slices.Repeat([]string{"fe80::/64"}, 6), requests...)
	})
	t.Run("V6-06", func(t *testing.T) {
		newCounter(1, ip).want(t, []int{200, 200}, nil,
			from("[64:ff9b::cb00:7101]:1"), from("[64:ff9b::cb00:7102]:1"))
	})

	keyCases(t)
	pathCases(t)
}
