package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// wantClient holds ClientIP to an address, or ErrNoKey where that is empty.
func wantClient(t *testing.T, name string, tr keyfunc.Trust, want string, r *http.Request) {
	t.Helper()
	a, err := tr.ClientIP(r)
	got := ""
	if a.IsValid() {
		got = a.String()
	}
	if got != want || (want == "") != errors.Is(err, keyfunc.ErrNoKey) || want != "" && err != nil {
		t.Errorf("%s: from %.40q with %.200s: got %q, %v; want %q", name, r.RemoteAddr, fmt.Sprintf("%q", r.Header), got, err, want)
	}
}

// headers is a request from a peer, with lines of one header.
func headers(remote, name string, lines ...string) *http.Request {
	return &http.Request{RemoteAddr: remote, Header: http.Header{http.CanonicalHeaderKey(name): lines}}
}

// ClientIP gives the address whole, where IP gives the network.
func TestClientIPIsWhole(t *testing.T) {
	for remote, want := range map[string]string{
		"203.0.113.7:1":               "203.0.113.7",
		"[2001:db8:1:2:3:4:5:6]:1":    "2001:db8:1:2:3:4:5:6",
		"[::ffff:203.0.113.7]:1":      "203.0.113.7",
		"[fe80::1%eth0]:1":            "fe80::1",
		"[::ffff:203.0.113.7%eth0]:1": "203.0.113.7",
		"[64:ff9b::203.0.113.7]:1":    "64:ff9b::cb00:7107",
		"@":                           "",
		"0.0.0.0":                     "",
	} {
		wantClient(t, "no trust", keyfunc.Trust{}, want, from(remote))
		if want != "" {
			wantClient(t, "behind a proxy", trust(t, "10.0.0.0/8"), want, from("10.0.0.2:1", "X-Forwarded-For: "+remote))
		}
	}
}

func TestProxies(t *testing.T) {
	const xff, real = "X-Forwarded-For", "X-Real-IP"
	ten := []string{"10.0.0.0/8"}
	tests := []struct {
		name   string
		p      keyfunc.Proxies
		remote string
		header string
		lines  []string
		want   string
	}{
		{"counted", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"1.1.1.1, 203.0.113.9, 10.0.0.3"}, "203.0.113.9"},
		{"counted, one", keyfunc.Proxies{CIDRs: ten, Hops: 1}, "10.0.0.2:1", xff, []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"a client inside the range", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"1.1.1.1, 10.9.9.9, 10.0.0.3"}, "10.9.9.9"},
		{"counted strangers", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"203.0.113.9, 198.51.100.1"}, "203.0.113.9"},
		{"as many as counted", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"203.0.113.9, 10.0.0.3"}, "203.0.113.9"},
		{"fewer", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"203.0.113.9"}, "10.0.0.2"},
		{"fewer, and blank ones", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{",, ", "203.0.113.9, ,\t", ""}, "10.0.0.2"},
		{"blank ones don't count", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"203.0.113.9,,", " , 10.0.0.3, ", ""}, "203.0.113.9"},
		{"over lines", keyfunc.Proxies{CIDRs: ten, Hops: 3}, "10.0.0.2:1", xff, []string{"1.1.1.1", "203.0.113.9", "10.0.0.3, 10.0.0.4"}, "203.0.113.9"},
		{"counted garbage", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"203.0.113.9, unknown"}, "203.0.113.9"},
		{"garbage at the place", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, []string{"203.0.113.9, unknown, 10.0.0.3"}, "10.0.0.2"},
		{"none", keyfunc.Proxies{CIDRs: ten, Hops: 2}, "10.0.0.2:1", xff, nil, "10.0.0.2"},
		{"32", keyfunc.Proxies{CIDRs: ten, Hops: 32}, "10.0.0.2:1", xff, []string{"1.1.1.1, 203.0.113.9" + strings.Repeat(",10.0.0.3", 31)}, "203.0.113.9"},
		{"counted, a peer that is not named", keyfunc.Proxies{CIDRs: ten, Hops: 1}, "192.0.2.1:1", xff, []string{"203.0.113.9"}, "192.0.2.1"},

		{"any peer, counted", keyfunc.Proxies{AnyPeer: true, Hops: 2}, "192.0.2.1:1", xff, []string{"1.1.1.1, 203.0.113.9, 192.0.2.9"}, "203.0.113.9"},
		{"any peer, fewer", keyfunc.Proxies{AnyPeer: true, Hops: 2}, "192.0.2.1:1", xff, []string{"203.0.113.9"}, "192.0.2.1"},
		{"any peer, no header", keyfunc.Proxies{AnyPeer: true, Hops: 1}, "192.0.2.1:1", xff, nil, "192.0.2.1"},
		{"any peer, a Unix socket", keyfunc.Proxies{AnyPeer: true, Hops: 1}, "@", xff, []string{"203.0.113.9"}, "203.0.113.9"},
		{"any peer, a Unix socket, no header", keyfunc.Proxies{AnyPeer: true, Hops: 1}, "@", xff, nil, ""},
		{"any peer, no RemoteAddr", keyfunc.Proxies{AnyPeer: true, Hops: 1}, "<nil>", xff, []string{"203.0.113.9"}, "203.0.113.9"},
		{"any peer, named hops", keyfunc.Proxies{AnyPeer: true, CIDRs: ten}, "192.0.2.1:1", xff, []string{"1.1.1.1, 203.0.113.9, 10.0.0.3"}, "203.0.113.9"},
		{"any peer, named hops only", keyfunc.Proxies{AnyPeer: true, CIDRs: ten}, "192.0.2.1:1", xff, []string{"10.0.0.4, 10.0.0.3"}, "192.0.2.1"},
		{"any peer, counted and named", keyfunc.Proxies{AnyPeer: true, CIDRs: ten, Hops: 1}, "192.0.2.1:1", xff, []string{"203.0.113.9, 10.0.0.3"}, "10.0.0.3"},
		{"any peer, edge", keyfunc.Proxies{AnyPeer: true, Header: real}, "192.0.2.1:1", real, []string{"203.0.113.9"}, "203.0.113.9"},
		{"any peer, Forwarded", keyfunc.Proxies{AnyPeer: true, Hops: 2, Header: "Forwarded"}, "192.0.2.1:1", "Forwarded", []string{"for=1.1.1.1, for=203.0.113.9, by=10.0.0.3"}, "203.0.113.9"},

		{"Unix", keyfunc.Proxies{Unix: true}, "@", xff, []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
		{"Unix, empty", keyfunc.Proxies{Unix: true}, "", xff, []string{"203.0.113.9"}, "203.0.113.9"},
		{"Unix, a path", keyfunc.Proxies{Unix: true}, "/run/proxy.sock", xff, []string{"203.0.113.9"}, "203.0.113.9"},
		{"Unix, abstract", keyfunc.Proxies{Unix: true}, "@proxy", xff, []string{"203.0.113.9"}, "203.0.113.9"},
		{"Unix, no header", keyfunc.Proxies{Unix: true}, "@", xff, nil, ""},
		{"Unix, garbage", keyfunc.Proxies{Unix: true}, "@", xff, []string{"203.0.113.9, unknown"}, ""},
		{"Unix, another header", keyfunc.Proxies{Unix: true}, "@", "Forwarded", []string{"for=203.0.113.9"}, ""},
		{"Unix, a TCP peer", keyfunc.Proxies{Unix: true}, "192.0.2.1:1", xff, []string{"203.0.113.9"}, "192.0.2.1"},
		{"Unix, nobody's address", keyfunc.Proxies{Unix: true}, "0.0.0.0:1", xff, []string{"203.0.113.9"}, ""},
		{"Unix, no address", keyfunc.Proxies{Unix: true}, "<nil>", xff, []string{"203.0.113.9"}, ""},
		{"Unix and named, over Unix", keyfunc.Proxies{Unix: true, CIDRs: ten}, "@", xff, []string{"1.1.1.1, 203.0.113.9, 10.0.0.3"}, "203.0.113.9"},
		{"Unix and named, over TCP", keyfunc.Proxies{Unix: true, CIDRs: ten}, "10.0.0.2:1", xff, []string{"1.1.1.1, 203.0.113.9, 10.0.0.3"}, "203.0.113.9"},
		{"Unix and named, a stranger", keyfunc.Proxies{Unix: true, CIDRs: ten}, "192.0.2.1:1", xff, []string{"203.0.113.9"}, "192.0.2.1"},
		{"Unix and named, proxies only", keyfunc.Proxies{Unix: true, CIDRs: ten}, "@", xff, []string{"10.0.0.3"}, ""},
		{"Unix, counted", keyfunc.Proxies{Unix: true, Hops: 2}, "@", xff, []string{"203.0.113.9, 192.0.2.9"}, "203.0.113.9"},
		{"Unix, counted, fewer", keyfunc.Proxies{Unix: true, Hops: 2}, "@", xff, []string{"203.0.113.9"}, ""},
		{"Unix, edge", keyfunc.Proxies{Unix: true, Header: real}, "@", real, []string{"203.0.113.9"}, "203.0.113.9"},
		{"named, not Unix", keyfunc.Proxies{CIDRs: ten}, "@", xff, []string{"203.0.113.9"}, ""},

		{"edge", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", "X-Real-Ip", []string{"203.0.113.9"}, "203.0.113.9"},
		{"edge, lower case", keyfunc.Proxies{CIDRs: ten, Header: "x-real-ip"}, "10.0.0.2:1", real, []string{"203.0.113.9"}, "203.0.113.9"},
		{"edge, underscores", keyfunc.Proxies{CIDRs: ten, Header: "client_IP"}, "10.0.0.2:1", "CLIENT_IP", []string{"203.0.113.9"}, "203.0.113.9"},
		{"edge, blanks and a port", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"\t203.0.113.9:80 "}, "203.0.113.9"},
		{"edge, quoted", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{`"[2001:db8::1]:80"`}, "2001:db8::1"},
		{"edge, a client inside the range", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"10.0.0.9"}, "10.0.0.9"},
		{"edge, absent", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, nil, "10.0.0.2"},
		{"edge, blank", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{" "}, "10.0.0.2"},
		{"edge, garbage", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"unknown"}, "10.0.0.2"},
		{"edge, a list", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"203.0.113.9, 203.0.113.8"}, "10.0.0.2"},
		{"edge, as in Forwarded", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"for=203.0.113.9"}, "10.0.0.2"},
		{"edge, twice", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"203.0.113.9", "203.0.113.9"}, "10.0.0.2"},
		{"edge, twice, one blank", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"203.0.113.9", ""}, "10.0.0.2"},
		{"edge, the lists don't count", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", xff, []string{"203.0.113.9"}, "10.0.0.2"},
		{"edge, a stranger", keyfunc.Proxies{CIDRs: ten, Header: real}, "192.0.2.1:1", real, []string{"203.0.113.9"}, "192.0.2.1"},
		{"edge, nobody", keyfunc.Proxies{CIDRs: ten, Header: real}, "10.0.0.2:1", real, []string{"::"}, "10.0.0.2"},
		{"Forwarded, not X-Forwarded-For", keyfunc.Proxies{CIDRs: ten, Header: "FORWARDED"}, "10.0.0.2:1", xff, []string{"203.0.113.9"}, "10.0.0.2"},
		{"X-Forwarded-For, not Forwarded", keyfunc.Proxies{CIDRs: ten, Header: "x-forwarded-for"}, "10.0.0.2:1", "Forwarded", []string{"for=203.0.113.9"}, "10.0.0.2"},
		{"X-Forwarded-For by name", keyfunc.Proxies{CIDRs: ten, Header: "x-forwarded-for"}, "10.0.0.2:1", xff, []string{"1.1.1.1, 203.0.113.9"}, "203.0.113.9"},
	}
	for _, tt := range tests {
		wantClient(t, tt.name, made(t, tt.p), tt.want, headers(tt.remote, tt.header, tt.lines...))
	}
}

// The client is seen if it is whole in the last 4096 bytes of the list, whatever
// is to the left of them, and however they are put on lines. What is cut off
// must not pass for another address: of 2001:db8::1, 01:db8::1 is one.
func TestListBound(t *testing.T) {
	const peer, client = "10.0.0.2", "2001:db8::1"
	for name, tt := range map[string]struct {
		p            keyfunc.Proxies
		client, fill string
	}{
		"commas":            {keyfunc.Proxies{}, client, ","},
		"proxies":           {keyfunc.Proxies{}, client, ",10.0.0.4"},
		"counted":           {keyfunc.Proxies{Hops: 1}, client, ","},
		"Forwarded":         {keyfunc.Proxies{Header: "Forwarded"}, `for="` + client + `"`, ","},
		"Forwarded, quotes": {keyfunc.Proxies{Header: "Forwarded"}, `for="` + client + `"`, `,for=10.0.0.4;x="\",\\"`},
	} {
		tt.p.CIDRs = []string{"10.0.0.0/8"}
		tr := made(t, tt.p)
		header := tt.p.Header
		if header == "" {
			header = "X-Forwarded-For"
		}
		for size := 4090; size <= 4102; size++ {
			n := size - len(tt.client)
			list := tt.client + strings.Repeat(",", n%len(tt.fill)) + strings.Repeat(tt.fill, n/len(tt.fill))
			want := client
			if size > 4096 {
				want = "" // nor for the proxy
			}
			first := strings.Index(list, ",")
			middle := 2000 + strings.Index(list[2000:], tt.fill)
			each := append([]string{tt.client}, strings.Split(list[first+1:], ",")...)
			if strings.Contains(tt.fill, `"`) {
				each = append(each[:1], list[first+1:]) // a comma in quotes ends no element
			}
			for where, lines := range map[string][]string{
				"one line":             {list},
				"two":                  {list[:middle], list[middle+1:]},
				"the client's own":     {list[:first], list[first+1:]},
				"one for each element": each,
				"and text before":      {"x," + list},
				"and a space before":   {"x, " + list},
				"and a comma before":   {"," + list},
				"and an address":       {"1.1.1.1," + list},
				"and a line before":    {"x", list},
				"and blank lines":      {"", "", list},
				"text, two":            {"x," + list[:middle], list[middle+1:]},
				"text, of each":        append([]string{"x"}, each...),
			} {
				wantClient(t, fmt.Sprintf("%s, %d bytes, %s", name, size, where), tr, want, headers(peer, header, lines...))
			}
		}
	}
	// A blank at the very start takes a byte, as any other.
	for size, want := range map[int]string{4095: client, 4096: ""} {
		line := " " + client + strings.Repeat(",", size-len(client))
		wantClient(t, fmt.Sprint(size), trust(t, "10.0.0.0/8"), want, headers(peer, "X-Forwarded-For", line))
	}
	// A header with one address is no list.
	zone := strings.Repeat("z", 5000)
	edge := made(t, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: "X-Real-IP"})
	wantClient(t, "edge", edge, "fe80::1", headers("10.0.0.2", "X-Real-IP", "fe80::1%"+zone))
}

// A list is searched as far as it must be, and not altered.
func TestHeaderStaysAsItIs(t *testing.T) {
	r := headers("10.0.0.2:1", "X-Forwarded-For", "1.1.1.1", "203.0.113.9, 10.0.0.3", "")
	before := r.Header.Clone()
	wantClient(t, "", trust(t, "10.0.0.0/8"), "203.0.113.9", r)
	if fmt.Sprint(before) != fmt.Sprint(r.Header) {
		t.Errorf("the header became %q", r.Header)
	}
}

func ExampleTrust_ClientIP() {
	proxies, err := keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: "Forwarded"}.Trust()
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.2:5000"
	r.Header.Add("Forwarded", `for=198.51.100.20;host="`) // the client's own word
	r.Header.Add("Forwarded", `for="[2001:db8::1]:4711";proto=https`)

	a, err := proxies.ClientIP(r)
	fmt.Println(a, err, netip.MustParsePrefix("2001:db8::/32").Contains(a))
	// Output: 2001:db8::1 <nil> true
}
