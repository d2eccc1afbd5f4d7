package keyfunc

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/weirgo/weir/algorithms"
)

// Trust says whose word [IP] takes for a client's address. The zero Trust
// takes nobody's: the address is the socket's peer, and no header is read.
//
// A Trust doesn't change and may be shared.
type Trust struct {
	proxies []netip.Prefix // unmapped, masked
}

// TrustProxies takes the word of proxies at the given addresses, and of no one
// else. Each of cidrs is a range, "10.0.0.0/8", or one address, "192.0.2.1".
// IPv4-mapped IPv6 means the IPv4 in it.
//
// Name the proxies only. Whoever is inside a named range can write any client
// address; and a client of yours inside one is passed over in the search.
//
// All mistakes come back at once, each an [algorithms.FieldError] with Field
// "cidrs[i]": what is no address or range, has a zone (the search drops zones),
// trusts everybody, or has bits beyond its length, where it isn't clear whether
// the range or the address was meant. No cidrs at all is a mistake too: the
// zero Trust says that. With an error the Trust is the zero Trust.
func TrustProxies(cidrs ...string) (Trust, error) {
	if len(cidrs) == 0 {
		return Trust{}, &algorithms.FieldError{
			Field:  "cidrs",
			Value:  cidrs,
			Reason: "must name at least one proxy; to trust none, use Trust{}",
		}
	}
	t := Trust{proxies: make([]netip.Prefix, 0, len(cidrs))}
	var errs []error
	for i, s := range cidrs {
		p, reason := parseProxy(s)
		if reason != "" {
			errs = append(errs, &algorithms.FieldError{
				Field:  fmt.Sprintf("cidrs[%d]", i),
				Value:  s,
				Reason: reason,
			})
			continue
		}
		t.proxies = append(t.proxies, p)
	}
	if errs != nil {
		return Trust{}, errors.Join(errs...)
	}
	return t, nil
}

// parseProxy reads a range or an address. The reason says what is wrong with
// it, and is empty where nothing is.
func parseProxy(s string) (p netip.Prefix, reason string) {
	// Zones first: ParsePrefix would refuse one without saying so.
	if strings.Contains(s, "%") {
		return p, "must have no zone: zones are dropped before addresses are compared"
	}
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return p, "must be an IP address, or a range such as 10.0.0.0/8; each of several is an argument of its own"
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), ""
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, "must be a range such as 10.0.0.0/8 or 2001:db8::/32, or an IP address; each of several is an argument of its own"
	}
	// Addresses are unmapped before they are compared, so a mapped range would
	// match nobody.
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return p, "an IPv4-mapped range must have at least /96: below that it isn't IPv4 alone"
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p.Bits() == 0 {
		return p, "must not trust everybody: clients could then write their own address; name the proxies"
	}
	if m := p.Masked(); m != p {
		return p, fmt.Sprintf("must have no bits set beyond /%d: write %v for the range or %v for the address", p.Bits(), m, p.Addr())
	}
	return p, ""
}

// trusts tells whether a, unmapped and without a zone, is a named proxy's.
func (t Trust) trusts(a netip.Addr) bool {
	for _, p := range t.proxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
