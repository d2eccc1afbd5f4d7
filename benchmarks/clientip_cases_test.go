package benchmarks

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
)

// clientIPCase is one of the cases in which limiters took the wrong client.
type clientIPCase struct {
	id, title string
	proxies   []string // the server's own
	limit     int
	statuses  []int // nil where the case names none
	requests  []clientRequest

	refusable bool // to refuse clients without an address is right too

	// What is wrong if one client has several keys, or several clients have one,
	// and nothing more is known.
	split, merged string
}

// clientRequest is a request of a case.
type clientRequest struct {
	client string // for whom it must be counted: an address, or words where the case leaves it open
	forged string // whom its headers pretend, if anybody
	remote string // the RemoteAddr: "@" and "" are those of Unix sockets
	lines  []string
}

func (cr clientRequest) request() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = cr.remote
	for _, line := range cr.lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	if cr.remote == "@" || cr.remote == "" { // as net/http has it
		local := &net.UnixAddr{Net: "unix", Name: "/run/server.sock"}
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
	}
	return r
}

// from is a request of the client, without a forged header.
func from(client, remote string, lines ...string) clientRequest {
	return clientRequest{client: client, remote: remote, lines: lines}
}

// forging is a request of the client whose headers pretend another.
func forging(forged, client, remote string, lines ...string) clientRequest {
	return clientRequest{client: client, forged: forged, remote: remote, lines: lines}
}

var (
	ten      = []string{"10.0.0.0/8"}
	unix     = []string{"unix"} // whoever connects to the server's socket
	longText = strings.Repeat("x", 300)
	longZone = strings.Repeat("z", 64)
)

var clientIPCases = []clientIPCase{
	{
		id: "IP-01", title: "headers, and no proxy", limit: 3, statuses: []int{200, 200, 200, 429, 429},
		requests: []clientRequest{
			forging("198.51.100.1", "203.0.113.7", "203.0.113.7:40001", "X-Forwarded-For: 198.51.100.1"),
			forging("198.51.100.2", "203.0.113.7", "203.0.113.7:40002", "X-Real-IP: 198.51.100.2"),
			forging("198.51.100.3", "203.0.113.7", "203.0.113.7:40003", "True-Client-IP: 198.51.100.3"),
			forging("198.51.100.4", "203.0.113.7", "203.0.113.7:40004", "Forwarded: for=198.51.100.4"),
			forging("198.51.100.5", "203.0.113.7", "203.0.113.7:40005", "X-Forwarded-For: 198.51.100.5"),
		},
	},
	{
		id: "IP-02", title: "a forged left element", proxies: ten, limit: 2, statuses: []int{200, 200, 429, 200},
		requests: []clientRequest{
			forging("198.51.100.20", "203.0.113.66", "10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20, 203.0.113.66"),
			forging("198.51.100.20", "203.0.113.66", "10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20, 203.0.113.66"),
			forging("198.51.100.20", "203.0.113.66", "10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20, 203.0.113.66"),
			from("198.51.100.20", "10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20"),
		},
	},
	{
		id: "IP-03", title: "a header of two lines", proxies: []string{"127.0.0.1/32"}, limit: 1, statuses: []int{200, 429, 200},
		requests: []clientRequest{
			forging("198.51.100.1", "203.0.113.8", "127.0.0.1:9000", "X-Forwarded-For: 198.51.100.1, 127.0.0.1", "X-Forwarded-For: 203.0.113.8"),
			forging("198.51.100.99", "203.0.113.8", "127.0.0.1:9000", "X-Forwarded-For: 198.51.100.99, 127.0.0.1", "X-Forwarded-For: 203.0.113.8"),
			from("198.51.100.1", "127.0.0.1:9000", "X-Forwarded-For: 198.51.100.1"),
		},
	},
	{
		id: "IP-04", title: "a forged first line, within the proxies' range", proxies: ten,
		requests: []clientRequest{
			forging("10.0.0.5", "203.0.113.9", "10.0.0.2:7000", "X-Forwarded-For: 10.0.0.5", "X-Forwarded-For: 203.0.113.9"),
		},
	},
	{
		id: "IP-06", title: "a right element that is no address", proxies: ten,
		requests: []clientRequest{
			forging("198.51.100.7", "10.0.0.2", "10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, garbage"),
			from("198.51.100.7", "10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, ,"),
			forging("198.51.100.7", "10.0.0.2", "10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, 999.1.1.1"),
			forging("198.51.100.7", "10.0.0.2", "10.0.0.2:7000", "X-Forwarded-For: 198.51.100.7, unknown"),
		},
	},
	{
		id: "IP-07", title: "ports and brackets", proxies: ten, limit: 2, statuses: []int{200, 200, 429, 200, 200, 429},
		requests: []clientRequest{
			from("203.0.113.7", "10.0.0.2:7000", "X-Forwarded-For: 203.0.113.7"),
			from("203.0.113.7", "10.0.0.2:7000", "X-Forwarded-For: 203.0.113.7:38792"),
			from("203.0.113.7", "10.0.0.2:7000", "X-Forwarded-For: 203.0.113.7:38793"),
			from("2001:db8::240", "10.0.0.2:7000", "X-Forwarded-For: [2001:db8::240]"),
			from("2001:db8::240", "10.0.0.2:7000", "X-Forwarded-For: [2001:db8::240]:38792"),
			from("2001:db8::240", "10.0.0.2:7000", "X-Forwarded-For: 2001:db8::240"),
		},
	},
	{
		id: "IP-08a", title: "a Unix socket, nobody trusted", limit: 2, refusable: true,
		requests: []clientRequest{
			from("whoever", "@"),
			from("whoever", ""),
			forging("203.0.113.7", "whoever", "@", "X-Forwarded-For: 203.0.113.7"),
		},
	},
	{
		// Of the three requests, what is asked is that the third is its client's. The
		// other here is another client's.
		id: "IP-08b", title: "a Unix socket, the peer trusted", proxies: unix,
		requests: []clientRequest{
			from("203.0.113.7", "@", "X-Forwarded-For: 203.0.113.7"),
			from("203.0.113.8", "@", "X-Forwarded-For: 203.0.113.8"),
		},
	},
	{
		id: "IP-09", title: "a peer without a port", limit: 2, statuses: []int{200, 200, 429, 200, 200, 429},
		requests: []clientRequest{
			from("203.0.113.7", "203.0.113.7"),
			from("203.0.113.7", "203.0.113.7:1234"),
			from("203.0.113.7", "203.0.113.7"),
			from("2001:db8::1", "2001:db8::1"),
			from("2001:db8::1", "[2001:db8::1]:443"),
			from("2001:db8::1", "2001:db8::1"),
		},
	},
	{
		id: "IP-10", title: "headers of nonsense", proxies: ten, limit: 3, statuses: []int{200, 200, 200, 429, 429},
		requests: []clientRequest{
			from("10.0.0.2", "10.0.0.2:7000", "X-Forwarded-For: 23189987"),
			from("10.0.0.2", "10.0.0.2:7000", `X-Forwarded-For: "invalid_ip`),
			from("10.0.0.2", "10.0.0.2:7000", "X-Forwarded-For: 23189988"),
			from("10.0.0.2", "10.0.0.2:7000", "X-Forwarded-For: "+longText),
			from("10.0.0.2", "10.0.0.2:7000", "X-Forwarded-For: 0"),
		},
	},
	{
		id: "IP-11", title: "proxies only", proxies: ten, limit: 5, statuses: []int{200, 200, 200, 200, 200, 429},
		requests: []clientRequest{
			from("a proxy", "10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5"),
			from("a proxy", "10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5"),
			from("a proxy", "10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5"),
			from("a proxy", "10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5"),
			from("a proxy", "10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5"),
			from("a proxy", "10.0.0.2:7000", "X-Forwarded-For: 10.0.0.9, 10.0.0.5"),
		},
	},
	{
		id: "V6-01", title: "many addresses of a /64", limit: 3, statuses: []int{200, 200, 200, 429, 429, 200}, split: split64,
		requests: []clientRequest{
			from("2001:db8:1:2::1", "[2001:db8:1:2::1]:443"),
			from("2001:db8:1:2::1", "[2001:db8:1:2::2]:443"),
			from("2001:db8:1:2::1", "[2001:db8:1:2::3]:443"),
			from("2001:db8:1:2::1", "[2001:db8:1:2::4]:443"),
			from("2001:db8:1:2::1", "[2001:db8:1:2::5]:443"),
			from("2001:db8:1:3::1", "[2001:db8:1:3::1]:443"),
		},
	},
	{
		id: "V6-02", title: "IPv4-mapped peers", limit: 2, statuses: []int{200, 200, 429, 200, 429},
		split: mappedApart, merged: oneMapped,
		requests: []clientRequest{
			from("203.0.113.1", "[::ffff:203.0.113.1]:1"),
			from("203.0.113.1", "[::ffff:203.0.113.1]:2"),
			from("203.0.113.1", "[::ffff:203.0.113.1]:3"),
			from("203.0.113.2", "[::ffff:203.0.113.2]:1"),
			from("203.0.113.1", "203.0.113.1:9"),
		},
	},
	{
		id: "V6-04", title: "spellings of a /64", limit: 2, statuses: []int{200, 200, 429, 429}, split: split64,
		requests: []clientRequest{
			from("2001:db8::1", "[2001:db8::a:b]:1"),
			from("2001:db8::1", "[2001:0db8:0000:0000:0000:0000:000a:000b]:1"),
			from("2001:db8::1", "[2001:DB8:0:0::c]:1"),
			from("2001:db8::1", "[2001:db8::1]:1"),
		},
	},
	{
		// Each request twice: what is asked is that the same text has the same key.
		id: "V6-05", title: "zones", proxies: ten,
		requests: []clientRequest{
			from("eth0", "[fe80::1%eth0]:4848"),
			from("eth0.100", "[fe80::1%eth0.100]:4848"),
			from("proxied", "10.0.0.2:1", "X-Forwarded-For: fe80::1%eth0, fe80::2%"+longZone),
			from("eth0", "[fe80::1%eth0]:4848"),
			from("eth0.100", "[fe80::1%eth0.100]:4848"),
			from("proxied", "10.0.0.2:1", "X-Forwarded-For: fe80::1%eth0, fe80::2%"+longZone),
		},
	},
	{
		// That they share a bucket would be acceptable if the documentation said so,
		// or if the range could be exempted. No peer has either, though a test of
		// go-chi/httprate's own expects it.
		id: "V6-06", title: "clients behind NAT64", limit: 1, statuses: []int{200, 200}, merged: oneNAT64,
		requests: []clientRequest{
			from("64:ff9b::cb00:7101", "[64:ff9b::cb00:7101]:1"),
			from("64:ff9b::cb00:7102", "[64:ff9b::cb00:7102]:1"),
		},
	},
}
