package adapters_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// keyCase is requests to "/" and their keys.
type keyCase struct {
	limit  int64
	key    keyfunc.Func
	layers []layer // outside the limiter
	asks   []ask
	want   []int
	keys   []string // nil: any
	stored int      // number of keys in the store; 0: any
}

func (c keyCase) run(t *testing.T) { each(t, c.test) }

func (c keyCase) test(t *testing.T, serve func(app) http.Handler) {
	l := newLimiter(t, c.limit, c.key)
	h := serve(app{layers: append(slices.Clip(c.layers), limit(l.Middleware)), routes: []route{
		{"GET", "/", fine}, {"POST", "/", fine},
	}})
	l.want(t, h, c.want, c.asks...)
	if got := l.store.since(0); c.keys != nil && !slices.Equal(got, c.keys) {
		t.Errorf("keys %q, want %q", got, c.keys)
	}
	if got := l.store.Len(); c.stored > 0 && got != c.stored {
		t.Errorf("%d keys in the store, want %d", got, c.stored)
	}
}

// keyCases are several of one id.
type keyCases map[string]keyCase

func (all keyCases) run(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, c := range all {
			t.Run(name, func(t *testing.T) { c.test(t, serve) })
		}
	})
}

func trust(t *testing.T, p keyfunc.Proxies) keyfunc.Trust {
	t.Helper()
	tr, err := p.Trust()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// behind is the key by address behind proxies.
func behind(t *testing.T, cidrs ...string) keyfunc.Func {
	t.Helper()
	return keyfunc.IP(trust(t, keyfunc.Proxies{CIDRs: cidrs}))
}

func ip01(t *testing.T) {
	const peer = "203.0.113.7"
	keyCase{limit: 3, key: perIP, asks: []ask{
		from(peer+":40001", "X-Forwarded-For: 198.51.100.1"),
		from(peer+":40002", "X-Real-IP: 198.51.100.2"),
		from(peer+":40003", "True-Client-IP: 198.51.100.3"),
		from(peer+":40004", "Forwarded: for=198.51.100.4"),
		from(peer+":40005", "X-Forwarded-For: 198.51.100.5"),
	}, want: []int{200, 200, 200, 429, 429}, keys: slices.Repeat([]string{peer}, 5), stored: 1}.run(t)
}

func ip02(t *testing.T) {
	const victim, attacker = "198.51.100.20", "203.0.113.66"
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 2, behind(t, "10.0.0.0/8"))
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", fine}}})
		forged := from("10.0.0.5:5000", "X-Forwarded-For: "+victim+", "+attacker)
		last := l.want(t, h, []int{200, 200, 429, 200}, forged, forged, forged,
			from("10.0.0.5:5000", "X-Forwarded-For: "+victim))[3]
		wantRateHeaders(t, last.Header(), "1")
		if got := l.store.since(0); !slices.Equal(got, []string{attacker, attacker, attacker, victim}) {
			t.Errorf("keys %q", got)
		}
	})
}

func ip03(t *testing.T) {
	keyCase{limit: 1, key: behind(t, "127.0.0.1/32"), asks: []ask{
		from("127.0.0.1:9000", "X-Forwarded-For: 198.51.100.1, 127.0.0.1", "X-Forwarded-For: 203.0.113.8"),
		from("127.0.0.1:9000", "X-Forwarded-For: 198.51.100.99, 127.0.0.1", "X-Forwarded-For: 203.0.113.8"),
		from("127.0.0.1:9000", "X-Forwarded-For: 198.51.100.1"),
	}, want: []int{200, 429, 200}, keys: []string{"203.0.113.8", "203.0.113.8", "198.51.100.1"}}.run(t)
}

func ip04(t *testing.T) {
	keyCase{limit: 1, key: behind(t, "10.0.0.0/8"), asks: []ask{
		from("10.0.0.2:7000", "X-Forwarded-For: 10.0.0.5", "X-Forwarded-For: 203.0.113.9"),
	}, want: []int{200}, keys: []string{"203.0.113.9"}}.run(t)
}

func ip06(t *testing.T) {
	const proxy = "10.0.0.2:7000"
	keyCase{limit: 9, key: behind(t, "10.0.0.0/8"), asks: []ask{
		from(proxy, "X-Forwarded-For: 198.51.100.7, garbage"),
		from(proxy, "X-Forwarded-For: 198.51.100.7, ,"),
		from(proxy, "X-Forwarded-For: 198.51.100.7, 999.1.1.1"),
		from(proxy, "X-Forwarded-For: 198.51.100.7, unknown"),
	}, want: []int{200, 200, 200, 200}, keys: []string{"10.0.0.2", "198.51.100.7", "10.0.0.2", "10.0.0.2"}}.run(t)
}

func ip07(t *testing.T) {
	const proxy = "10.0.0.2:7000"
	keyCase{limit: 2, key: behind(t, "10.0.0.0/8"), asks: []ask{
		from(proxy, "X-Forwarded-For: 203.0.113.7"),
		from(proxy, "X-Forwarded-For: 203.0.113.7:38792"),
		from(proxy, "X-Forwarded-For: 203.0.113.7:38793"),
		from(proxy, "X-Forwarded-For: [2001:db8::240]"),
		from(proxy, "X-Forwarded-For: [2001:db8::240]:38792"),
		from(proxy, "X-Forwarded-For: 2001:db8::240"),
	}, want: []int{200, 200, 429, 200, 200, 429}, stored: 2}.run(t)
}

func ip08(t *testing.T) {
	asks := []ask{from("@"), from("none"), from("@", "X-Forwarded-For: 203.0.113.7")}
	asks = append(asks, asks[2], asks[2])
	believed := keyfunc.IP(trust(t, keyfunc.Proxies{Unix: true}))
	cases := keyCases{
		"case_a": {limit: 2, key: perIP, asks: asks, want: []int{400, 400, 400, 400, 400}, keys: []string{}},
		"case_b": {limit: 2, key: believed, asks: asks, want: []int{400, 400, 200, 200, 429},
			keys: []string{"203.0.113.7", "203.0.113.7", "203.0.113.7"}},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) { c.test(t, serve) })
		}
		t.Run("socket", func(t *testing.T) { ip08socket(t, serve, believed) })
	})
}

// ip08socket is a server on a Unix socket.
func ip08socket(t *testing.T, serve func(app) http.Handler, key keyfunc.Func) {
	l := newLimiter(t, 2, key)
	server := httptest.NewUnstartedServer(serve(app{
		layers: []layer{limit(l.Middleware)},
		routes: []route{{"GET", "/", fine}},
	}))
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	var got []int
	for _, line := range []string{"", "X-Forwarded-For: 203.0.113.7\r\n", "X-Forwarded-For: 203.0.113.7\r\n",
		"X-Forwarded-For: 198.51.100.1, 203.0.113.7\r\n"} {
		got = append(got, send(t, server, "GET / HTTP/1.1\r\nHost: x\r\n"+line+"\r\n").StatusCode)
	}
	if want := []int{400, 200, 200, 429}; !slices.Equal(got, want) {
		t.Errorf("status %v, want %v", got, want)
	}
}

func ip09(t *testing.T) {
	keyCase{limit: 2, key: perIP, asks: []ask{
		from("203.0.113.7"), from("203.0.113.7:1234"), from("203.0.113.7"),
		from("2001:db8::1"), from("[2001:db8::1]:443"), from("2001:db8::1"),
	}, want: []int{200, 200, 429, 200, 200, 429}, stored: 2}.run(t)
}

func ip10(t *testing.T) {
	cases := keyCases{}
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP"} {
		var asks []ask
		for _, value := range []string{"23189987", `"invalid_ip`, "23189988", strings.Repeat("x", 300), "0"} {
			asks = append(asks, from("10.0.0.2:7000", header+": "+value))
		}
		key := keyfunc.IP(trust(t, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: header}))
		cases[header] = keyCase{limit: 3, key: key, asks: asks, want: []int{200, 200, 200, 429, 429},
			keys: slices.Repeat([]string{"10.0.0.2"}, 5), stored: 1}
	}
	cases.run(t)
}

func ip11(t *testing.T) {
	keyCase{limit: 5, key: behind(t, "10.0.0.0/8"),
		asks: slices.Repeat([]ask{from("10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5")}, 6),
		want: []int{200, 200, 200, 200, 200, 429}, keys: slices.Repeat([]string{"10.0.0.2"}, 6)}.run(t)
}

func v601(t *testing.T) {
	keyCase{limit: 3, key: perIP, asks: []ask{
		from("[2001:db8:1:2::1]:443"), from("[2001:db8:1:2::2]:443"), from("[2001:db8:1:2::3]:443"),
		from("[2001:db8:1:2::4]:443"), from("[2001:db8:1:2::5]:443"), from("[2001:db8:1:3::1]:443"),
	}, want: []int{200, 200, 200, 429, 429, 200}, stored: 2}.run(t)
}

func v602(t *testing.T) {
	keyCase{limit: 2, key: perIP, asks: []ask{
		from("[::ffff:203.0.113.1]:1"), from("[::ffff:203.0.113.1]:2"), from("[::ffff:203.0.113.1]:3"),
		from("[::ffff:203.0.113.2]:1"), from("203.0.113.1:9"),
	}, want: []int{200, 200, 429, 200, 429}, stored: 2}.run(t)
}

func v604(t *testing.T) {
	keyCase{limit: 2, key: perIP, asks: []ask{
		from("[2001:db8::a:b]:1"), from("[2001:0db8:0000:0000:0000:0000:000a:000b]:1"),
		from("[2001:DB8:0:0::c]:1"), from("[2001:db8::1]:1"),
	}, want: []int{200, 200, 429, 429}, stored: 1}.run(t)
}

// Twice each: the same text gives the same key.
func v605(t *testing.T) {
	keyCase{limit: 6, key: behind(t, "10.0.0.0/8"), asks: slices.Repeat([]ask{
		from("[fe80::1%eth0]:4848"),
		from("[fe80::1%eth0.100]:4848"),
		from("10.0.0.2:1", "X-Forwarded-For: fe80::1%eth0, fe80::2%"+strings.Repeat("z", 64)),
	}, 2), want: slices.Repeat([]int{200}, 6), keys: slices.Repeat([]string{"fe80::/64"}, 6)}.run(t)
}

func v606(t *testing.T) {
	keyCase{limit: 1, key: perIP, asks: []ask{
		from("[64:ff9b::cb00:7101]:1"), from("[64:ff9b::cb00:7102]:1"),
	}, want: []int{200, 200}, stored: 2}.run(t)
}
