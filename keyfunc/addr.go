package keyfunc

import (
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// parseAddr reads an address with or without a port: "192.0.2.1",
// "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80". It comes
// back unmapped and without its zone. The address that means none, 0.0.0.0 or
// "::", is nobody's.
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
	// netip allocates its errors, and the peer on a Unix socket, "unknown" and
	// "_hidden" are no rarity: they don't begin as addresses do.
	if s == "" || strings.IndexByte("0123456789abcdefABCDEF:", s[0]) < 0 {
		return netip.Addr{}, false
	}
	// The zone goes first: netip would intern the text of each, and a client
	// can write any.
	s, zone, zoned := strings.Cut(s, "%")
	a, err := netip.ParseAddr(s)
	if err != nil || zoned && (zone == "" || a.Is4()) {
		return netip.Addr{}, false
	}
	a = a.Unmap()
	return a, !a.IsUnspecified()
}

// isPort tells whether s is a colon and a port number, or one that is hidden,
// as RFC 7239 §6.3 has it.
func isPort(s string) bool {
	if len(s) < 2 || s[0] != ':' {
		return false
	}
	if s[1] == '_' {
		return len(s) > 2 && strings.IndexFunc(s[2:], func(c rune) bool {
			return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c))
		}) < 0
	}
	for _, c := range []byte(s[1:]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) <= len(":65535")
}

// addrRange is all addresses from first to last, of one family.
type addrRange struct{ first, last netip.Addr }

// addrSet is a set of addresses: ranges in order, of which no two touch.
type addrSet []addrRange

// newAddrSet is the union of ranges that are unmapped and masked.
func newAddrSet(prefixes []netip.Prefix) addrSet {
	all := make(addrSet, 0, len(prefixes))
	for _, p := range prefixes {
		all = append(all, addrRange{p.Addr(), lastAddr(p)})
	}
	slices.SortFunc(all, func(a, b addrRange) int { return a.first.Compare(b.first) })
	merged := all[:0]
	for _, r := range all {
		if n := len(merged) - 1; n >= 0 && merged[n].last.BitLen() == r.first.BitLen() {
			// Next of the very last address is no address, and that is before all others.
			if next := merged[n].last.Next(); !next.IsValid() || r.first.Compare(next) <= 0 {
				if merged[n].last.Less(r.last) {
					merged[n].last = r.last
				}
				continue
			}
		}
		merged = append(merged, r)
	}
	return slices.Clip(merged)
}

// has tells whether a, unmapped and without a zone, is in s.
func (s addrSet) has(a netip.Addr) bool {
	i := sort.Search(len(s), func(i int) bool { return !s[i].last.Less(a) })
	return i < len(s) && !a.Less(s[i].first) // IPv4 is before all of IPv6
}

// everybody tells whether s has every address of a family.
func (s addrSet) everybody() bool {
	return slices.ContainsFunc(s, func(r addrRange) bool {
		return r.first.IsUnspecified() && !r.last.Next().IsValid()
	})
}

// lastAddr is the last address of p.
func lastAddr(p netip.Prefix) netip.Addr {
	b, bits := p.Addr().As16(), p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	for i := range b {
		switch have := bits - 8*i; {
		case have <= 0:
			b[i] = 0xff
		case have < 8:
			b[i] |= 0xff >> have
		}
	}
	a := netip.AddrFrom16(b)
	if p.Addr().Is4() {
		return a.Unmap()
	}
	return a
}
