package keyfunc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// FuzzIP sends a client's text through honest proxies: each appends the address
// that it sees to what it got. Whatever the text is, the key is the client's.
//
// text is the client's header, one line for each of its lines; host is its Host,
// which proxies put into Forwarded. shape says how many proxies there are, and
// how they write. remote is a RemoteAddr of any kind.
func FuzzIP(f *testing.F) {
	for i, text := range []string{
		"",
		"198.51.100.1",
		"198.51.100.1, unknown",
		"10.0.0.3, 10.0.0.4",
		"for=198.51.100.1, for=10.0.0.3",
		`for="`,
		`for=198.51.100.1;host="a, for=10.0.0.4`,
		`"`,
		`\`,
		`"\`,
		`for="\", for="[2001:db8::66]`,
		",,\t, ,",
		"198.51.100.1\n10.0.0.3\n\n",
		"fe80::1%a]b,%,[",
		strings.Repeat(",", 5000),
		strings.Repeat("10.0.0.3,", 500),
		strings.Repeat(`"\`, 2500),
	} {
		for _, host := range []string{"example.com", `a", for=198.51.100.66;b="`, `\",`} {
			f.Add(text, host, uint16(i*977), "192.0.2.1:80")
			f.Add(text, host, ^uint16(i*977), text)
		}
	}
	none := keyfunc.IP(keyfunc.Trust{})
	f.Fuzz(func(t *testing.T, text, host string, shape uint16, remote string) {
		w := honest(text, host[:min(len(host), 300)], shape)
		key := func(f keyfunc.Func, remote string, lines []string) string {
			k, err := f(headers(remote, w.header, lines...))
			if err != nil && (k != "" || !errors.Is(err, keyfunc.ErrNoKey)) || err == nil && k == "" {
				t.Fatalf("from %q: got %q, %v; want a key, or ErrNoKey alone", remote, k, err)
			}
			return k
		}
		behind := keyfunc.IP(made(t, w.trust))
		if k := key(behind, w.peer, w.lines); k != w.client {
			t.Errorf("%+v behind %s with %q: got %q, want %q", w.trust, w.peer, w.lines, k, w.client)
		}

		// Who is no proxy is not believed, whatever it claims.
		const stranger = "203.0.113.200"
		for name, f := range map[string]keyfunc.Func{"no trust": none, "a trust": behind} {
			if name == "no trust" || !w.trust.AnyPeer {
				if k := key(f, stranger+":80", w.lines); k != stranger {
					t.Errorf("a stranger, %s, with %q: got %q", name, w.lines, k)
				}
			}
		}
		bare := key(none, remote, nil)
		if k := key(none, remote, w.lines); k != bare {
			t.Errorf("from %q: the header turns %q into %q, and nobody is trusted", remote, bare, k)
		}
		named := keyfunc.IP(trust(t, "10.0.0.0/8", "2001:db8:ffff::/48"))
		if !strings.HasPrefix(bare, "10.") && !strings.HasPrefix(bare, "2001:db8:ffff:") {
			if k := key(named, remote, w.lines); k != bare {
				t.Errorf("from %q, which is not named: the header turns %q into %q", remote, bare, k)
			}
		} else if key(named, remote, w.lines) == "" {
			t.Errorf("from %q, which is named: no key with %q", remote, w.lines)
		}
		if strings.Count(bare, ":") > 7 || len(bare) > len("ffff:ffff:ffff:ffff::/64") {
			t.Errorf("from %q: key %q", remote, bare)
		}
	})
}

// way is a request's way through honest proxies.
type way struct {
	trust  keyfunc.Proxies
	header string
	lines  []string // as they come in
	peer   string   // the last proxy
	client string   // the key of who wrote to the first
}

// honest lets proxies handle a request with a client's text.
func honest(text, host string, shape uint16) way {
	take := func(n uint16) int { // so many cases are in shape
		c := shape % n
		shape /= n
		return int(c)
	}
	w := way{header: "X-Forwarded-For"}
	rfc7239 := take(2) == 1
	if rfc7239 {
		w.header = "Forwarded"
		w.trust.Header = "Forwarded"
	}
	clients := []struct{ addr, key string }{
		{"203.0.113.7", "203.0.113.7"},
		{"2001:db8:1:2::3", "2001:db8:1:2::/64"},
		{"64:ff9b::cb00:7107", "64:ff9b::cb00:7107"},
	}
	c := clients[take(3)]
	w.client = c.key
	hops := 1 + take(4)
	peers := take(4)
	switch w.peer = "10.0.0.2:5000"; peers {
	case 0:
		w.trust.CIDRs = []string{"10.0.0.0/8", "2001:db8:ffff::/48"}
	case 1:
		w.trust.CIDRs = []string{"10.0.0.2"}
		w.trust.Hops = hops
	case 2:
		w.trust.Unix = true
		w.trust.CIDRs = []string{"10.0.0.0/8", "2001:db8:ffff::/48"}
		w.peer = "@"
	case 3:
		w.trust.AnyPeer = true
		w.trust.Hops = hops
		w.peer = "192.0.2.99:1"
	}
	ownLine, comma, port, before := take(2) == 1, []string{",", ", "}[take(2)], take(2) == 1, take(2) == 1
	if text != "" {
		w.lines = strings.Split(text, "\n")
	}
	seen := c.addr // by the proxy whose turn it is
	for n := range hops {
		elem := seen
		if six := strings.Contains(seen, ":"); six && (port || rfc7239) {
			elem = "[" + seen + "]"
		}
		if port {
			elem += ":4711"
		}
		if rfc7239 {
			if strings.Contains(elem, ":") {
				elem = `"` + elem + `"`
			}
			params := []string{"for=" + elem, "host=" + quoted(host)}
			if before {
				params[0], params[1] = params[1], params[0]
			}
			elem = strings.Join(params, ";")
		}
		if last := len(w.lines) - 1; last < 0 || ownLine {
			w.lines = append(w.lines, elem)
		} else {
			w.lines[last] += comma + elem
		}
		seen = []string{"10.0.0.3", "2001:db8:ffff::4", "10.0.0.5"}[n%3]
	}
	return w
}

// quoted is s as a quoted-string of RFC 9110.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
