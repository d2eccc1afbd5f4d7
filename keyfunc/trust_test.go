package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
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

// made is p.Trust where it must work.
func made(t testing.TB, p keyfunc.Proxies) keyfunc.Trust {
	t.Helper()
	tr, err := p.Trust()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// wantKey holds the key of a request to an address, or ErrNoKey where that is empty.
func wantKey(t *testing.T, name string, f keyfunc.Func, want, remote string, lines ...string) {
	t.Helper()
	k, err := f(from(remote, lines...))
	if k != want || (want == "") != errors.Is(err, keyfunc.ErrNoKey) || want != "" && err != nil {
		t.Errorf("%s: from %.40q with %.120q: got %q, %v; want %q", name, remote, lines, k, err, want)
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
		{"::ffff:0.0.0.0/0", "must have at least /96"},
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

// fieldsOf is the Fields of the mistakes that err joins.
func fieldsOf(t *testing.T, err error) []string {
	t.Helper()
	var fields []string
	for _, err := range flatten(err) {
		var fe *algorithms.FieldError
		if !errors.As(err, &fe) || fe.Reason == "" {
			t.Errorf("%v is no FieldError with a reason", err)
			continue
		}
		fields = append(fields, fe.Field)
	}
	return fields
}

// What no single range does, several can: to hold everybody.
func TestTrustEverybody(t *testing.T) {
	tests := []struct {
		cidrs []string
		want  []string
	}{
		{[]string{"0.0.0.0/1", "128.0.0.0/1"}, []string{"cidrs"}},
		{[]string{"128.0.0.0/1", "0.0.0.0/2", "64.0.0.0/2"}, []string{"cidrs"}},
		{[]string{"::ffff:0.0.0.0/97", "128.0.0.0/1"}, []string{"cidrs"}},
		{[]string{"::/1", "8000::/1"}, []string{"cidrs"}},
		{[]string{"8000::/1", "10.0.0.0/8", "::/1", "192.0.2.1"}, []string{"cidrs"}},
		{[]string{"0.0.0.0/1", "x", "128.0.0.0/1"}, []string{"cidrs[1]", "cidrs"}}, // all mistakes at once
		{[]string{"0.0.0.0/0", "::/0"}, []string{"cidrs[0]", "cidrs[1]"}},
		{[]string{"0.0.0.0/1", "::/1"}, nil},
		{[]string{"128.0.0.0/1", "8000::/1"}, nil},
		{[]string{"::/1", "128.0.0.0/1"}, nil},
		{[]string{"0.0.0.0/1", "8000::/1"}, nil},
		{[]string{"0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3", "224.0.0.0/4", "240.0.0.0/5"}, nil},
	}
	for _, tt := range tests {
		_, err := keyfunc.TrustProxies(tt.cidrs...)
		if got := fieldsOf(t, err); !slices.Equal(got, tt.want) {
			t.Errorf("%q: mistakes in %q, want %q: %v", tt.cidrs, got, tt.want, err)
		}
		if tt.want != nil && !strings.Contains(err.Error(), "must not trust everybody") {
			t.Errorf("%q: %v", tt.cidrs, err)
		}
	}
}

func TestProxiesMistakes(t *testing.T) {
	one := []string{"10.0.0.0/8"}
	tests := []struct {
		p    keyfunc.Proxies
		want []string // Fields without "Proxies."
		say  string
	}{
		{keyfunc.Proxies{}, []string{"CIDRs"}, "use Trust{}"},
		{keyfunc.Proxies{CIDRs: []string{}}, []string{"CIDRs"}, ""},
		{keyfunc.Proxies{Hops: 1}, []string{"CIDRs"}, ""},
		{keyfunc.Proxies{Header: "X-Real-IP"}, []string{"CIDRs"}, ""},
		{keyfunc.Proxies{CIDRs: []string{"10.0.0.1", "10.0.0.5/8", "fe80::1%eth0", "::/0", "proxy"}},
			[]string{"CIDRs[1]", "CIDRs[2]", "CIDRs[3]", "CIDRs[4]"}, ""},
		{keyfunc.Proxies{Unix: true, CIDRs: []string{""}}, []string{"CIDRs[0]"}, ""},
		{keyfunc.Proxies{CIDRs: []string{"0.0.0.0/1", "128.0.0.0/1"}}, []string{"CIDRs"}, "everybody"},
		{keyfunc.Proxies{Unix: true, CIDRs: []string{"::/1", "8000::/1"}, Hops: 1}, []string{"CIDRs"}, "everybody"},
		{keyfunc.Proxies{AnyPeer: true, CIDRs: []string{"::/1", "8000::/1"}}, []string{"CIDRs"}, "everybody"},

		{keyfunc.Proxies{AnyPeer: true}, []string{"AnyPeer"}, "needs Hops"},
		{keyfunc.Proxies{AnyPeer: true, Unix: true}, []string{"AnyPeer"}, ""},
		{keyfunc.Proxies{AnyPeer: true, Header: "Forwarded"}, []string{"AnyPeer"}, ""},
		{keyfunc.Proxies{AnyPeer: true, Header: "x-forwarded-for"}, []string{"AnyPeer"}, ""},
		{keyfunc.Proxies{AnyPeer: true, Header: "X-Real-IP"}, nil, ""},
		{keyfunc.Proxies{AnyPeer: true, CIDRs: one}, nil, ""},
		{keyfunc.Proxies{AnyPeer: true, Hops: 1}, nil, ""},

		{keyfunc.Proxies{CIDRs: one, Hops: -1}, []string{"Hops"}, "must be 1 to 32"},
		{keyfunc.Proxies{CIDRs: one, Hops: 33}, []string{"Hops"}, "must be 1 to 32"},
		{keyfunc.Proxies{CIDRs: one, Hops: 32}, nil, ""},
		{keyfunc.Proxies{Unix: true, Hops: 1}, nil, ""},
		{keyfunc.Proxies{AnyPeer: true, Hops: -1}, []string{"Hops"}, ""},
		{keyfunc.Proxies{CIDRs: one, Hops: 1, Header: "X-Real-IP"}, []string{"Hops"}, "X-Real-Ip holds one address"},
		{keyfunc.Proxies{CIDRs: one, Hops: 33, Header: "X-Real-IP"}, []string{"Hops"}, ""},
		{keyfunc.Proxies{CIDRs: one, Hops: 1, Header: "forwarded"}, nil, ""},
		{keyfunc.Proxies{CIDRs: one, Hops: 1, Header: "X-FORWARDED-FOR"}, nil, ""},

		{keyfunc.Proxies{CIDRs: one, Header: "X-Real-IP: "}, []string{"Header"}, "name of a header"},
		{keyfunc.Proxies{CIDRs: one, Header: "X Real IP"}, []string{"Header"}, ""},
		{keyfunc.Proxies{CIDRs: one, Header: "X-Real-IP,X-Forwarded-For"}, []string{"Header"}, ""},
		{keyfunc.Proxies{CIDRs: one, Header: "X-Réal-IP"}, []string{"Header"}, ""},
		{keyfunc.Proxies{CIDRs: one, Header: "X-Trac\u212A-IP"}, []string{"Header"}, ""}, // the Kelvin sign, a K to ToLower
		{keyfunc.Proxies{CIDRs: one, Header: " "}, []string{"Header"}, ""},
		{keyfunc.Proxies{CIDRs: one, Header: "azAZ09_-"}, nil, ""},

		{keyfunc.Proxies{Header: "X:", Hops: 99}, []string{"Header", "CIDRs", "Hops"}, ""},
		{keyfunc.Proxies{CIDRs: []string{"0.0.0.0/1", "128.0.0.0/1", "x"}, Header: "X:", Hops: -1},
			[]string{"CIDRs[2]", "CIDRs", "Header", "Hops"}, ""},
	}
	for _, tt := range tests {
		tr, err := tt.p.Trust()
		var want []string
		for _, f := range tt.want {
			want = append(want, "Proxies."+f)
		}
		if got := fieldsOf(t, err); !slices.Equal(got, want) {
			t.Errorf("%+v: mistakes in %q, want %q: %v", tt.p, got, want, err)
		}
		if err == nil {
			continue
		}
		if !strings.Contains(err.Error(), tt.say) {
			t.Errorf("%+v: %v; want %q", tt.p, err, tt.say)
		}
		if !reflect.DeepEqual(tr, keyfunc.Trust{}) {
			t.Errorf("%+v: with mistakes, the Trust is %+v", tt.p, tr)
		}
	}
}

// The value in a mistake is what was written, for the message to be found again.
func TestMistakesHaveTheValue(t *testing.T) {
	_, err := keyfunc.Proxies{CIDRs: []string{"10.0.0.5/8"}, Header: "X Y", Hops: 40}.Trust()
	const want = `weir: Proxies.CIDRs[0] = "10.0.0.5/8": must have no bits set beyond /8: write 10.0.0.0/8 for the range or 10.0.0.5 for the address
weir: Proxies.Header = "X Y": must be the name of a header, such as X-Forwarded-For
weir: Proxies.Hops = 40: must be 1 to 32 proxies, or 0 to go past all that CIDRs names`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestTrustProxiesIsProxies(t *testing.T) {
	cidrs := []string{"10.0.0.0/8", "2001:db8::1", "10.1.0.0/16"}
	a, b := trust(t, cidrs...), made(t, keyfunc.Proxies{CIDRs: cidrs})
	if !reflect.DeepEqual(a, b) {
		t.Errorf("TrustProxies gives %+v, Proxies %+v", a, b)
	}
	cidrs[0] = "192.0.2.0/24" // is the caller's; a Trust doesn't change
	wantKey(t, "after a change", keyfunc.IP(a), "203.0.113.9", "10.0.0.2:1", "X-Forwarded-For: 203.0.113.9")
}

func TestTrustMayBeShared(t *testing.T) {
	tr := trust(t, "10.0.0.0/8")
	f, g := keyfunc.IP(tr), keyfunc.Subnet(tr, 24, 48)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				wantKey(t, "IP", f, "203.0.113.9", "10.0.0.2:1", "X-Forwarded-For: 203.0.113.9")
				wantKey(t, "Subnet", g, "203.0.113.0/24", "10.0.0.2:1", "X-Forwarded-For: 203.0.113.9")
			}
		})
	}
	wg.Wait()
}

func ExampleTrustProxies() {
	_, err := keyfunc.TrustProxies("10.0.0.5/8", "0.0.0.0/0")
	fmt.Println(err)
	// Output:
	// weir: cidrs[0] = "10.0.0.5/8": must have no bits set beyond /8: write 10.0.0.0/8 for the range or 10.0.0.5 for the address
	// weir: cidrs[1] = "0.0.0.0/0": must not trust everybody: clients could then write their own address; name the proxies, or see Proxies.AnyPeer
}

func ExampleProxies() {
	// An edge whose address changes connects through a Unix socket, and replaces
	// its header.
	edge, err := keyfunc.Proxies{Unix: true, Header: "CF-Connecting-IP"}.Trust()
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "@"
	r.Header.Set("X-Forwarded-For", "198.51.100.20") // the client's own word
	r.Header.Set("CF-Connecting-IP", "203.0.113.66")
	fmt.Println(edge.ClientIP(r))

	_, err = keyfunc.Proxies{AnyPeer: true, Hops: -1, Header: "X-Real-IP:"}.Trust()
	fmt.Println(err)
	// Output:
	// 203.0.113.66 <nil>
	// weir: Proxies.Header = "X-Real-IP:": must be the name of a header, such as X-Forwarded-For
	// weir: Proxies.Hops = -1: must be 1 to 32 proxies, or 0 to go past all that CIDRs names
}
