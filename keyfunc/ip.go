package keyfunc

import (
	"net/http"
	"net/netip"
	"strings"
)

// IP gives the client's address: "203.0.113.7", or for IPv6 the /64 it is in,
// "2001:db8:1:2::/64", as even a home has that many addresses to choose from.
// IPv4-mapped IPv6 is the IPv4 in it; a zone is dropped. An address of the
// NAT64 range 64:ff9b::/96 stands as it is, "64:ff9b::cb00:7107", since each
// is another IPv4 client.
//
// The zero [Trust] takes the socket's peer and reads no header. Behind a proxy
// that is the proxy, and all clients share one budget: say which proxies are
// yours with [TrustProxies]. Then, if the peer is one of them, the client is
// looked for in X-Forwarded-For from right to left, past the proxies, and is
// the first address that isn't one. All lines of the header are one list, in
// their order; blank elements are dropped, ports and brackets taken off. What
// stands further left the client may have written itself.
//
// The key is the peer if the peer is no proxy, if the header names proxies
// only or is absent, and if the search meets an element that isn't an address:
// to go on to the left of that would be to believe the client.
//
// The error wraps [ErrNoKey] if the request's RemoteAddr holds no address, as
// on a Unix socket. With or without a port is fine.
func IP(t Trust) Func {
	return func(r *http.Request) (string, error) {
		peer, ok := parseAddr(r.RemoteAddr)
		if !ok {
			return "", errNoPeer
		}
		if t.trusts(peer) {
			return ipKey(t.client(peer, r.Header["X-Forwarded-For"])), nil
		}
		return ipKey(peer), nil
	}
}

var errNoPeer = noKey("peer address")

// client searches the lines for the address of the client for whom peer, a
// proxy, speaks. It cuts from the right and keeps nothing, as a client may have
// sent a header of a million commas.
func (t Trust) client(peer netip.Addr, lines []string) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		rest := lines[i]
		for more := true; more; {
			elem := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, elem = rest[:comma], rest[comma+1:]
			} else {
				more = false
			}
			elem = strings.Trim(elem, " \t")
			if elem == "" {
				continue
			}
			a, ok := parseAddr(elem)
			if !ok {
				return peer
			}
			if !t.trusts(a) {
				return a
			}
		}
	}
	return peer
}

// parseAddr reads an address with or without a port: "192.0.2.1",
// "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". It comes
// back unmapped and without its zone.
func parseAddr(s string) (netip.Addr, bool) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 || end+1 < len(s) && !isPort(s[end+1:]) {
			return netip.Addr{}, false
		}
		s = s[1:end]
	} else if i := strings.IndexByte(s, ':'); i >= 0 && isPort(s[i:]) {
		s = s[:i] // one colon: what is before it can't be IPv6
	}
	// The zone goes first: netip would intern the text of each, and a client
	// can write any.
	s, zone, zoned := strings.Cut(s, "%")
	a, err := netip.ParseAddr(s)
	if err != nil || zoned && (zone == "" || a.Is4()) {
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

// isPort tells whether s is a colon and a port number.
func isPort(s string) bool {
	if len(s) < 2 || len(s) > len(":65535") || s[0] != ':' {
		return false
	}
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// nat64 is the well-known prefix of RFC 6052: its low 32 bits are an IPv4
// address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// ipKey is the key of an unmapped address without a zone.
func ipKey(a netip.Addr) string {
	if a.Is4() || nat64.Contains(a) {
		return a.String()
	}
	p, _ := a.Prefix(64)                          // fails only for lengths an address doesn't have
	var buf [len("ffff:ffff:ffff:ffff::/64")]byte // Prefix.String would allocate twice
	return string(p.AppendTo(buf[:0]))
}
