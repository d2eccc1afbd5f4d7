package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
)

// trust is TrustProxies where it must work.
func trust(t testing.TB, cidrs ...string) keyfunc.Trust {
	t.Helper()
	tr, err := keyfunc.TrustProxies(cidrs...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

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

func TestTrustProxies(t *testing.T) {
	tests := []struct {
		cidr   string
		inside string // a peer of the range
		next   string // a peer outside
	}{
		{"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
		{"::ffff:10.0.0.0/104", "10.255.255.255", "11.0.0.0"},
		{"::ffff:0a00:0002", "10.0.0.2", "10.0.0.3"},
		{"10.0.0.2/32", "10.0.0.2", "10.0.0.3"},
		{"2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"},
		{"2001:db8::1", "2001:db8::1", "2001:db8::2"},
		{"fe80::/10", "fe80::1%eth0", "fec0::1"},
	}
	for _, tt := range tests {
		f := keyfunc.IP(trust(t, tt.cidr))
		if k, _ := f(from(tt.inside, "X-Forwarded-For: 203.0.113.9")); k != "203.0.113.9" {
			t.Errorf("%s doesn't trust %s: %q", tt.cidr, tt.inside, k)
		}
		if k, _ := f(from(tt.next, "X-Forwarded-For: 203.0.113.9")); k == "203.0.113.9" {
			t.Errorf("%s trusts %s", tt.cidr, tt.next)
		}
	}
}

func TestTrustProxiesMistakes(t *testing.T) {
	tests := []struct{ cidr, reason string }{
		{"", "must be an IP address"},
		{"proxy.internal", "must be an IP address"},
		{"10.0.0.2:80", "must be an IP address"},
		{" 10.0.0.2", "must be an IP address"},
		{"10.0.0.0/33", "must be a range"},
		{"10.0.0.0/", "must be a range"},
		{"10.0.0.0/8,192.0.2.1", "must be a range"},
		{"fe80::1%eth0", "must have no zone"},
		{"fe80::%eth0/10", "must have no zone"},
		{"0.0.0.0/0", "must not trust everybody"},
		{"10.0.0.0/0", "must not trust everybody"},
		{"::/0", "must not trust everybody"},
		{"::ffff:0:0/96", "must not trust everybody"},
		{"::ffff:0:0/95", "must have at least /96"},
		{"::ffff:10.0.0.0/8", "must have at least /96"},
		{"10.0.0.5/8", "write 10.0.0.0/8 for the range or 10.0.0.5 for the address"},
		{"::ffff:10.0.0.5/104", "write 10.0.0.0/8 for the range or 10.0.0.5"},
		{"2001:db8::1/64", "write 2001:db8::/64 for the range or 2001:db8::1"},
	}
	cidrs := []string{"192.0.2.1"}
	for _, tt := range tests {
		cidrs = append(cidrs, tt.cidr)
	}
	tr, err := keyfunc.TrustProxies(cidrs...)
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != len(tests) {
		t.Fatalf("want %d mistakes, got: %v", len(tests), err)
	}
	for i, tt := range tests {
		var fe *algorithms.FieldError
		if err := joined.Unwrap()[i]; !errors.As(err, &fe) {
			t.Errorf("%T is no FieldError", err)
		} else if fe.Field != fmt.Sprintf("cidrs[%d]", i+1) || fe.Value != tt.cidr || !strings.Contains(fe.Reason, tt.reason) {
			t.Errorf("got %v; want cidrs[%d], %q: %s", fe, i+1, tt.cidr, tt.reason)
		}
	}
	// With a mistake nobody is trusted, the well-named proxy neither.
	if k, _ := keyfunc.IP(tr)(from("192.0.2.1", "X-Forwarded-For: 203.0.113.9")); k != "192.0.2.1" {
		t.Errorf("after mistakes: got %q", k)
	}

	var fe *algorithms.FieldError
	if _, err := keyfunc.TrustProxies(); !errors.As(err, &fe) || fe.Field != "cidrs" {
		t.Errorf("of nothing: %v; want a FieldError for cidrs", err)
	}
}

func TestIPAllocatesTheKeyOnly(t *testing.T) {
	none, proxies := keyfunc.IP(keyfunc.Trust{}), keyfunc.IP(trust(t, "10.0.0.0/8"))
	commas := strings.Repeat(",", 1<<20)
	hops := strings.Repeat("10.0.0.3, ", 1<<16)
	tests := []struct {
		name   string
		f      keyfunc.Func
		remote string
		xff    string
		want   string
	}{
		{"IPv4", none, "203.0.113.7:1234", "198.51.100.1", "203.0.113.7"},
		{"IPv6", none, "[2001:db8:1:2::3]:1234", "", "2001:db8:1:2::/64"},
		{"zone", none, "[fe80::1%eth0]:1234", "", "fe80::/64"},
		{"proxied", proxies, "10.0.0.2:1", "198.51.100.1, 203.0.113.7:5, 10.0.0.3", "203.0.113.7"},
		{"a million commas", proxies, "10.0.0.2:1", "203.0.113.7" + commas, "10.0.0.2"},
		{"many hops", proxies, "10.0.0.2:1", "203.0.113.7," + hops, "10.0.0.2"},
	}
	for _, tt := range tests {
		r := from(tt.remote, "X-Forwarded-For: "+tt.xff)
		if k, err := tt.f(r); k != tt.want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", tt.name, k, err, tt.want)
		}
		if n := testing.AllocsPerRun(5, func() { tt.f(r) }); n > 1 {
			t.Errorf("%s: %v allocations, want 1", tt.name, n)
		}
	}
}

func FuzzIP(f *testing.F) {
	f.Add("203.0.113.7:1", "198.51.100.1, 10.0.0.3", "[2001:db8::1]:80")
	f.Add("10.0.0.2:1", "198.51.100.1,, garbage", "fe80::1%a]b,%,[")
	f.Add("[::ffff:10.0.0.2%x]", "::ffff:1.2.3.4", ",")
	f.Add("@", "64:ff9b::1.2.3.4", "")
	none, proxies := keyfunc.IP(keyfunc.Trust{}), keyfunc.IP(trust(f, "10.0.0.0/8", "fe80::/10"))
	f.Fuzz(func(t *testing.T, remote, line1, line2 string) {
		r := from(remote)
		bare, bareErr := none(r)
		r.Header["X-Forwarded-For"] = []string{line1, line2}
		for name, f := range map[string]keyfunc.Func{"no trust": none, "proxies": proxies} {
			k, err := f(r)
			switch {
			case err != nil && (k != "" || !errors.Is(err, keyfunc.ErrNoKey)):
				t.Fatalf("%s: got %q, %v; want ErrNoKey alone", name, k, err)
			case err == nil && (k == "" || len(k) > len("ffff:ffff:ffff:ffff::/64")):
				t.Fatalf("%s: key %q", name, k)
			}
			if (err == nil) != (bareErr == nil) {
				t.Fatalf("%s: the header decides whether there is a key: %v, %v", name, err, bareErr)
			}
			if k2, err2 := f(r); k2 != k || err2 != err {
				t.Fatalf("%s: got %q, %v and then %q, %v", name, k, err, k2, err2)
			}
		}
		if k, _ := none(r); k != bare {
			t.Fatalf("a header nobody vouches for: %q became %q", bare, k)
		}
		// Lines are one list: two lines and the two with a comma between are the same.
		two, _ := proxies(r)
		r.Header["X-Forwarded-For"] = []string{line1 + "," + line2}
		if one, _ := proxies(r); one != two {
			t.Fatalf("two lines give %q, the same on one %q", two, one)
		}
	})
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

func ExampleTrustProxies() {
	_, err := keyfunc.TrustProxies("10.0.0.5/8", "0.0.0.0/0")
	fmt.Println(err)
	// Output:
	// weir: cidrs[0] = "10.0.0.5/8": must have no bits set beyond /8: write 10.0.0.0/8 for the range or 10.0.0.5 for the address
	// weir: cidrs[1] = "0.0.0.0/0": must not trust everybody: clients could then write their own address; name the proxies, or see Proxies.AnyPeer
}
