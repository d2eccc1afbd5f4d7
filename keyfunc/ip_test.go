package keyfunc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/internal/notice"
	"github.com/weirgo/weir/keyfunc"
)

func TestIPOfPeer(t *testing.T) {
	tests := []struct{ remote, want string }{ // want empty: ErrNoKey
		{"203.0.113.7:1234", "203.0.113.7"},
		{"203.0.113.7", "203.0.113.7"},
		{"[203.0.113.7]:1234", "203.0.113.7"},
		{"[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::1]", "2001:db8:1:2::/64"},
		{"2001:DB8:1:2::1", "2001:db8:1:2::/64"},
		{"[::1]:80", "::/64"},
		{"[::ffff:203.0.113.7]:1", "203.0.113.7"},
		{"::ffff:cb00:7107", "203.0.113.7"},
		{"[::ffff:203.0.113.7%eth0]:1", "203.0.113.7"},
		{"[fe80::1%eth0]:80", "fe80::/64"},
		{"fe80::1%eth0:80", "fe80::/64"},
		{"[64:ff9b::cb00:7107]:80", "64:ff9b::cb00:7107"},
		{"64:ff9b::203.0.113.7", "64:ff9b::cb00:7107"},
		{"[64:ff9b:1::1]:80", "64:ff9b:1::/64"}, // outside the /96
		{"0.0.0.0:80", ""},
		{"[::]:80", ""},
		{"[::ffff:0.0.0.0]:80", ""},
		{"@", ""},
		{"", ""},
		{"/run/weir.sock", ""},
		{"<nil>", ""},
		{"localhost:80", ""},
		{"203.0.113.7:", ""},
		{"203.0.113.7:http", ""},
		{"203.0.113.7:123456", ""},
		{"203.0.113.7%eth0:80", ""},
		{"fe80::1%", ""},
		{"203.0.113.007", ""},
		{"2001:db8::1:443000", ""},
		{"[2001:db8::1", ""},
		{"[2001:db8::1]443", ""},
		{"[]:80", ""},
		{"[", ""},
		{":80", ""},
		{strings.Repeat("1", 1<<16), ""},
	}
	f := keyfunc.IP(keyfunc.Trust{})
	for _, tt := range tests {
		k, err := f(from(tt.remote, "X-Forwarded-For: 198.51.100.1"))
		if k != tt.want || (tt.want == "") != errors.Is(err, keyfunc.ErrNoKey) || tt.want != "" && err != nil {
			t.Errorf("%.40q: got %q, %v; want %q", tt.remote, k, err, tt.want)
		}
	}
}

func TestIPBehindProxies(t *testing.T) {
	f := keyfunc.IP(trust(t, "10.0.0.0/8", "192.0.2.1", "2001:db8:ffff::/48"))
	tests := []struct {
		name   string
		remote string
		xff    []string // lines
		want   string
	}{
		{"one hop", "10.0.0.2:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"bare address trusted", "192.0.2.1:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"its neighbour not", "192.0.2.2:1", []string{"203.0.113.9"}, "192.0.2.2"},
		{"peer mapped", "[::ffff:10.0.0.2]:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"peer IPv6", "[2001:db8:ffff::2]:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"peer no proxy", "198.51.100.1:1", []string{"203.0.113.9, 10.0.0.2"}, "198.51.100.1"},
		{"peer NAT64 of a proxy", "[64:ff9b::10.0.0.2]:1", []string{"203.0.113.9"}, "64:ff9b::a00:2"},
		{"past proxies", "10.0.0.2:1", []string{"1.1.1.1, 203.0.113.9, 10.0.0.3,10.0.0.4"}, "203.0.113.9"},
		{"past proxies with ports", "10.0.0.2:1", []string{"203.0.113.9, 10.0.0.3:80, [::ffff:10.0.0.4]:80, ::ffff:10.0.0.5"}, "203.0.113.9"},
		{"over lines", "10.0.0.2:1", []string{"1.1.1.1", "203.0.113.9", "10.0.0.3, 10.0.0.4", ""}, "203.0.113.9"},
		{"an IPv6 client", "10.0.0.2:1", []string{"[2001:db8:1:2::3]:5"}, "2001:db8:1:2::/64"},
		{"a mapped client", "10.0.0.2:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"a NAT64 client", "10.0.0.2:1", []string{"64:ff9b::203.0.113.9"}, "64:ff9b::cb00:7109"},
		{"tabs", "10.0.0.2:1", []string{"203.0.113.9\t,\t10.0.0.3 "}, "203.0.113.9"},
		{"no header", "10.0.0.2:1", nil, "10.0.0.2"},
		{"blank", "10.0.0.2:1", []string{" , ,", ""}, "10.0.0.2"},
		{"proxies only", "10.0.0.2:1", []string{"10.0.0.9, 10.0.0.5"}, "10.0.0.2"},
		{"garbage on the right", "10.0.0.2:1", []string{"203.0.113.9, x"}, "10.0.0.2"},
		{"garbage behind a proxy", "10.0.0.2:1", []string{"203.0.113.9, unknown, 10.0.0.3"}, "10.0.0.2"},
		{"garbage on another line", "10.0.0.2:1", []string{"203.0.113.9", "_hidden", "10.0.0.3"}, "10.0.0.2"},
		{"garbage left of the client", "10.0.0.2:1", []string{"x, 203.0.113.9"}, "203.0.113.9"},
		{"zoned IPv4", "10.0.0.2:1", []string{"203.0.113.9%a"}, "10.0.0.2"},
		{"quoted", "10.0.0.2:1", []string{`"203.0.113.9"`}, "203.0.113.9"},
		{"half quoted", "10.0.0.2:1", []string{`"203.0.113.9`}, "10.0.0.2"},
		{"hidden port", "10.0.0.2:1", []string{`203.0.113.9:_a.b-C`}, "203.0.113.9"},
		{"nobody", "10.0.0.2:1", []string{"203.0.113.9, 0.0.0.0"}, "10.0.0.2"},
		{"nobody of IPv6", "10.0.0.2:1", []string{"203.0.113.9, [::]:80"}, "10.0.0.2"},
	}
	for _, tt := range tests {
		r := from(tt.remote, "X-Real-IP: 198.51.100.66", "Forwarded: for=198.51.100.66")
		for _, line := range tt.xff {
			r.Header.Add("X-Forwarded-For", line)
		}
		if k, err := f(r); k != tt.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", tt.name, k, err, tt.want)
		}
	}
}

// The peer is on a Unix socket and not trusted: there is no address, and the
// header doesn't give one.
func TestIPOnUnixSocket(t *testing.T) {
	for name, f := range map[string]keyfunc.Func{
		"no trust": keyfunc.IP(keyfunc.Trust{}),
		"proxies":  keyfunc.IP(trust(t, "10.0.0.0/8")),
	} {
		for _, r := range []string{"@", ""} {
			for _, lines := range [][]string{nil, {"X-Forwarded-For: 203.0.113.7"}} {
				if k, err := f(from(r, lines...)); k != "" || !errors.Is(err, keyfunc.ErrNoKey) {
					t.Errorf("%s, %q, %q: got %q, %v; want ErrNoKey", name, r, lines, k, err)
				}
			}
		}
	}
}

// lengths are all that Subnet takes.
func lengths(yield func(v4, v6 int) bool) {
	for n := 1; n <= 128; n++ {
		if !yield(min(n, 32), n) {
			return
		}
	}
}

func TestSubnet(t *testing.T) {
	tests := []struct {
		v4, v6 int
		remote string
		want   string
	}{
		{32, 64, "203.0.113.7:1", "203.0.113.7"},
		{31, 64, "203.0.113.7:1", "203.0.113.6/31"},
		{24, 64, "203.0.113.7:1", "203.0.113.0/24"},
		{1, 64, "203.0.113.7:1", "128.0.0.0/1"},
		{1, 64, "10.0.0.1:1", "0.0.0.0/1"},
		{24, 64, "[::ffff:203.0.113.7%x]:1", "203.0.113.0/24"},
		{32, 128, "[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2:3:4:5:6"},
		{32, 127, "[2001:db8:1:2:3:4:5:7]:1", "2001:db8:1:2:3:4:5:6/127"},
		{32, 127, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"},
		{32, 56, "[2001:db8:1:2ff:3:4:5:6]:1", "2001:db8:1:200::/56"},
		{32, 48, "[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1::/48"},
		{32, 1, "[2001:db8::1]:1", "::/1"},
		{32, 1, "[fe80::1%eth0]:1", "8000::/1"},
		{32, 128, "[fe80::1%eth0]:1", "fe80::1"},
		{32, 48, "[64:ff9b::203.0.113.7]:1", "64:ff9b::cb00:7107"},
		{32, 128, "[64:ff9b::203.0.113.7]:1", "64:ff9b::cb00:7107"},
		{31, 128, "[64:ff9b::203.0.113.7]:1", "64:ff9b::cb00:7106/127"},
		{24, 48, "[64:ff9b::203.0.113.7]:1", "64:ff9b::cb00:7100/120"},
		{1, 48, "[64:ff9b::203.0.113.7]:1", "64:ff9b::8000:0/97"},
		{24, 48, "[64:ff9b::1:203.0.113.7]:1", "64:ff9b::/48"}, // outside the /96
		{24, 48, "[64:ff9b:1::203.0.113.7]:1", "64:ff9b:1::/48"},
	}
	for _, tt := range tests {
		wantKey(t, fmt.Sprintf("Subnet(%d, %d)", tt.v4, tt.v6), keyfunc.Subnet(keyfunc.Trust{}, tt.v4, tt.v6), tt.want, tt.remote)
	}
}

// Two addresses that differ in one bit have one key if that is beyond the
// length, and two if not.
func TestSubnetSharesBeyondItsLength(t *testing.T) {
	flip := func(a netip.Addr, bit int) string {
		b := a.AsSlice()
		b[bit/8] ^= 0x80 >> (bit % 8)
		a, _ = netip.AddrFromSlice(b)
		return a.String()
	}
	for v4, v6 := range lengths {
		f := keyfunc.Subnet(keyfunc.Trust{}, v4, v6)
		for _, c := range []struct {
			addr  string
			first int // the bit that is the first of the network
			bits  int
		}{
			{"203.0.113.7", 0, v4},
			{"2001:db8:1:2:3:4:5:6", 0, v6},
			{"64:ff9b::203.0.113.7", 96, v4},
		} {
			a := netip.MustParseAddr(c.addr)
			key, err := f(from(c.addr))
			if err != nil {
				t.Fatal(err)
			}
			for bit := c.first; bit < a.BitLen(); bit++ {
				other, _ := f(from(flip(a, bit)))
				if same := bit >= c.first+c.bits; same != (other == key) {
					t.Fatalf("Subnet(%d, %d): %s and bit %d of it: %q and %q", v4, v6, c.addr, bit, key, other)
				}
			}
			if c.bits == a.BitLen()-c.first != !strings.Contains(key, "/") {
				t.Errorf("Subnet(%d, %d): %q: one address is written without a length, and a network with it", v4, v6, key)
			}
		}
	}
}

func TestSubnetMistakes(t *testing.T) {
	for _, tt := range []struct {
		v4, v6 int
		want   []string
	}{
		{0, 64, []string{"keyfunc.Subnet: v4"}},
		{33, 64, []string{"keyfunc.Subnet: v4"}},
		{-1, 128, []string{"keyfunc.Subnet: v4"}},
		{32, 0, []string{"keyfunc.Subnet: v6"}},
		{1, 129, []string{"keyfunc.Subnet: v6"}},
		{0, 0, []string{"keyfunc.Subnet: v4", "keyfunc.Subnet: v6"}},
		{64, 32, []string{"keyfunc.Subnet: v4"}}, // the two in each other's place
		{1, 1, nil},
		{32, 128, nil},
	} {
		wantMistakes(t, keyfunc.Subnet(keyfunc.Trust{}, tt.v4, tt.v6), tt.want...)
	}
	wantMistakes(t, keyfunc.IP(keyfunc.Trust{}))
}

// What is odd is told once to who takes notices, also where there is no address:
// a proxy on a Unix socket that is not trusted gives none.
func TestIPTellsWhatIsOdd(t *testing.T) {
	anyPeer := made(t, keyfunc.Proxies{AnyPeer: true, Hops: 1})
	for _, tt := range []struct {
		trust  keyfunc.Trust
		remote string
		line   string
		want   notice.Code
	}{
		{keyfunc.Trust{}, "192.0.2.1:1", "X-Forwarded-For: 203.0.113.7", notice.UntrustedHeaders},
		{keyfunc.Trust{}, "192.0.2.1:1", "Forwarded: for=203.0.113.7", notice.UntrustedHeaders},
		{keyfunc.Trust{}, "192.0.2.1:1", "X-Real-IP: 203.0.113.7", notice.UntrustedHeaders},
		{keyfunc.Trust{}, "@", "X-Forwarded-For: 203.0.113.7", notice.UntrustedHeaders},
		{keyfunc.Trust{}, "192.0.2.1:1", "X-Other: 203.0.113.7", ""},
		{trust(t, "10.0.0.0/8"), "192.0.2.1:1", "X-Forwarded-For: 203.0.113.7", ""},
		{anyPeer, "192.0.2.1:1", "X-Other: 1", notice.EveryoneTrusted},
		{anyPeer, "@", "X-Other: 1", notice.EveryoneTrusted},
	} {
		f := keyfunc.Subnet(tt.trust, 24, 48)
		f(from(tt.remote, tt.line)) // nobody takes notices: the next who does is told
		var got, want []notice.Code
		if tt.want != "" {
			want = append(want, tt.want)
		}
		r := from(tt.remote, tt.line)
		r = r.WithContext(context.WithValue(r.Context(), notice.Key{}, func(c notice.Code) { got = append(got, c) }))
		f(r)
		f(r)
		if !slices.Equal(got, want) {
			t.Errorf("from %q with %q: notices %q, want %q", tt.remote, tt.line, got, want)
		}
	}
}

func TestIPAllocatesTheKeyOnly(t *testing.T) {
	none, proxies := keyfunc.Trust{}, trust(t, "10.0.0.0/8")
	hops := made(t, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Hops: 2})
	rfc7239 := made(t, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: "Forwarded"})
	unix := made(t, keyfunc.Proxies{Unix: true})
	anyPeer := made(t, keyfunc.Proxies{AnyPeer: true, Hops: 1})
	edge := made(t, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: "X-Real-IP"})
	const xff, v4, v6 = "X-Forwarded-For: ", "203.0.113.7", "2001:db8:1:2::/64"
	tests := []struct {
		name   string
		trust  keyfunc.Trust
		remote string
		line   string
		want   string // empty: ErrNoKey, which must cost nothing
	}{
		{"IPv4", none, "203.0.113.7:1234", xff + "198.51.100.1", v4},
		{"IPv6", none, "[2001:db8:1:2::3]:1234", "", v6},
		{"zone", none, "[fe80::1%eth0]:1234", "", "fe80::/64"},
		{"nobody", none, "0.0.0.0:1", "", ""},
		{"a Unix socket", none, "@", xff + v4, ""},
		{"no RemoteAddr", none, "", xff + v4, ""},
		{"proxied", proxies, "10.0.0.2:1", xff + "198.51.100.1, 203.0.113.7:5, 10.0.0.3", v4},
		{"quoted", proxies, "10.0.0.2:1", xff + `"203.0.113.7:5"`, v4},
		{"unknown", proxies, "10.0.0.2:1", xff + "198.51.100.1, unknown", "10.0.0.2"},
		{"hidden", proxies, "10.0.0.2:1", xff + "198.51.100.1, _hidden", "10.0.0.2"},
		{"a million commas", proxies, "10.0.0.2:1", xff + v4 + strings.Repeat(",", 1<<20), ""},
		{"many hops", proxies, "10.0.0.2:1", xff + v4 + strings.Repeat(", 10.0.0.3", 1<<16), ""},
		{"hops", hops, "10.0.0.2:1", xff + "198.51.100.1, 203.0.113.7, 10.0.0.3", v4},
		{"too few hops", hops, "10.0.0.2:1", xff + v4, "10.0.0.2"},
		{"Forwarded", rfc7239, "10.0.0.2:1", `Forwarded: for=198.51.100.1, for="[2001:db8:1:2::3]:80";host="a,\"b;";proto=https, FOR=10.0.0.3`, v6},
		{"Forwarded without for", rfc7239, "10.0.0.2:1", `Forwarded: for=198.51.100.1, by=_x`, "10.0.0.2"},
		{"many quotes", rfc7239, "10.0.0.2:1", "Forwarded: " + strings.Repeat(`"\\\",`, 1<<18), "10.0.0.2"},
		{"trusted Unix socket", unix, "@", xff + "198.51.100.1, 203.0.113.7", v4},
		{"no RemoteAddr, trusted", unix, "", xff + v4, v4},
		{"any peer", anyPeer, "<nil>", xff + v4, v4},
		{"edge", edge, "10.0.0.2:1", "X-Real-IP: 203.0.113.7", v4},
	}
	for _, tt := range tests {
		f := keyfunc.IP(tt.trust)
		wantKey(t, tt.name, f, tt.want, tt.remote, tt.line)
		allowed := 1.0
		if tt.want == "" {
			allowed = 0
		}
		r := from(tt.remote, tt.line)
		if n := testing.AllocsPerRun(5, func() { f(r) }); n > allowed {
			t.Errorf("%s: %v allocations, want %v", tt.name, n, allowed)
		}
	}
	for v4, v6 := range lengths {
		f := keyfunc.Subnet(none, v4, v6)
		for _, remote := range []string{"255.255.255.255", "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1", "64:ff9b::255.255.255.255"} {
			r := from(remote)
			if n := testing.AllocsPerRun(5, func() { f(r) }); n > 1 {
				t.Errorf("Subnet(%d, %d) of %s: %v allocations, want 1", v4, v6, remote, n)
			}
		}
	}
}

func ExampleIP() {
	proxies, err := keyfunc.TrustProxies("10.0.0.0/8")
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.2:5000"
	r.Header.Set("X-Forwarded-For", "198.51.100.20, 203.0.113.66") // the first is the client's own word

	fmt.Println(keyfunc.IP(keyfunc.Trust{})(r))
	fmt.Println(keyfunc.IP(proxies)(r))
	// Output:
	// 10.0.0.2 <nil>
	// 203.0.113.66 <nil>
}

func ExampleSubnet() {
	f := keyfunc.Subnet(keyfunc.Trust{}, 24, 48)
	r := httptest.NewRequest("GET", "/", nil)
	for _, peer := range []string{"203.0.113.7:5000", "[2001:db8:1:2::3]:5000", "[64:ff9b::203.0.113.7]:5000"} {
		r.RemoteAddr = peer
		fmt.Println(f(r))
	}
	// Output:
	// 203.0.113.0/24 <nil>
	// 2001:db8:1::/48 <nil>
	// 64:ff9b::cb00:7100/120 <nil>
}
