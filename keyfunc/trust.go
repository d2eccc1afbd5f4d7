package keyfunc

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weirgo/weir/algorithms"
)

// Trust says whose word is taken for a client's address, by [IP] and all that
// goes by addresses. The zero Trust takes nobody's: the address is the socket's
// peer, and no header is read. [TrustProxies] and [Proxies] make others.
//
// A Trust doesn't change and may be shared.
type Trust struct {
	peers   addrSet
	unix    bool   // the peer on a Unix socket is believed
	anyPeer bool   // whoever connects is believed
	hops    int    // 0: past all of peers
	header  string // canonical; "" believes nobody
	single  bool   // the header holds one address
}

// Proxies says what stands between clients and the server, to make a [Trust] of
// it. One of CIDRs, Unix and AnyPeer is needed: a header is believed only if the
// peer who sent it is.
type Proxies struct {
	// CIDRs are the addresses of the proxies: ranges, "10.0.0.0/8", or single
	// addresses, "192.0.2.1". IPv4-mapped IPv6 means the IPv4 in it. Name the
	// proxies only: whoever is inside a named range can write any client address,
	// and a client inside one is passed over in the search.
	CIDRs []string

	// Unix believes whoever connects to a Unix socket that the server listens on:
	// guard it by the rights of its directory.
	Unix bool

	// AnyPeer believes whoever connects. It is for servers that can't be reached
	// but through a proxy whose address nobody knows, as on some platforms; if
	// there is another way in, limits by address are void, which the middleware
	// warns of. It needs Hops, a Header with one address, or CIDRs for the hops
	// behind the peer: past anybody there is no client.
	AnyPeer bool

	// Hops is how many proxies a request passes, the peer included, where each
	// appends one element: the client is the one at this place from the right, 1
	// being the last. 0 goes past all proxies that CIDRs names instead, which is
	// safer where their addresses are known. At most 32. A request that comes in
	// behind the first of them, or passes fewer, can write its own address: close
	// these ways, or use CIDRs.
	Hops int

	// Header holds the addresses. "" means "X-Forwarded-For". "Forwarded" (RFC
	// 7239) is a list too; any other holds the client's address alone, written by
	// an edge that replaces what the client sent, such as "CF-Connecting-IP",
	// "X-Real-IP" or "True-Client-IP". A header that the edge does not replace is
	// the client's own.
	Header string
}

// TrustProxies is [Proxies] with these CIDRs and nothing else: X-Forwarded-For
// from right to left, past the proxies named.
//
// All mistakes come back at once, each an [algorithms.FieldError] with Field
// "cidrs[i]", or "cidrs" for what several make together, and the Trust is then
// the zero Trust. No cidrs at all is a mistake too: the zero Trust says that.
func TrustProxies(cidrs ...string) (Trust, error) {
	if len(cidrs) == 0 {
		return Trust{}, &algorithms.FieldError{
			Field:  "cidrs",
			Value:  cidrs,
			Reason: "must name at least one proxy; to trust none, use Trust{}",
		}
	}
	peers, errs := parsePeers("cidrs", cidrs)
	if errs != nil {
		return Trust{}, errors.Join(errs...)
	}
	return Trust{peers: peers, header: forwardedFor}, nil
}

// Trust checks the whole of p. All mistakes come back at once, each an
// [algorithms.FieldError], and the Trust is then the zero Trust: what is no
// address or range, has a zone (the search drops zones), has bits beyond its
// length, where it isn't clear whether the range or the address was meant, or
// what together holds everybody.
func (p Proxies) Trust() (Trust, error) {
	peers, errs := parsePeers("Proxies.CIDRs", p.CIDRs)
	bad := func(field string, value any, reason string) {
		errs = append(errs, &algorithms.FieldError{Field: "Proxies." + field, Value: value, Reason: reason})
	}
	t := Trust{peers: peers, unix: p.Unix, anyPeer: p.AnyPeer, hops: p.Hops, header: forwardedFor}
	if p.Header != "" {
		t.header = http.CanonicalHeaderKey(p.Header)
		if strings.Trim(p.Header, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			bad("Header", p.Header, "must be the name of a header, such as X-Forwarded-For")
		}
	}
	t.single = t.header != forwardedFor && t.header != forwarded
	switch {
	case p.AnyPeer && p.Hops == 0 && !t.single && len(p.CIDRs) == 0:
		bad("AnyPeer", true, "needs Hops, a Header that holds one address, or CIDRs for the hops behind the peer")
	case !p.AnyPeer && !p.Unix && len(p.CIDRs) == 0:
		bad("CIDRs", p.CIDRs, "must name the proxies' addresses, or Unix or AnyPeer be set; to trust none, use Trust{}")
	}
	switch {
	case p.Hops < 0 || p.Hops > maxHops:
		bad("Hops", p.Hops, fmt.Sprintf("must be 1 to %d proxies, or 0 to go past all that CIDRs names", maxHops))
	case p.Hops > 0 && t.single:
		bad("Hops", p.Hops, "counts the elements of X-Forwarded-For or Forwarded, and "+t.header+" holds one address; leave one of them out")
	}
	if errs != nil {
		return Trust{}, errors.Join(errs...)
	}
	return t, nil
}

const (
	forwardedFor = "X-Forwarded-For"
	forwarded    = "Forwarded"
	maxHops      = 32
)

const notEverybody = "must not trust everybody: clients could then write their own address; name the proxies, or see Proxies.AnyPeer"

// parsePeers is the set of all cidrs, which are to be believed, and what is
// wrong with them.
func parsePeers(field string, cidrs []string) (addrSet, []error) {
	set, errs := parseCIDRs(field, cidrs, func(p netip.Prefix) string {
		if p.Bits() == 0 {
			return notEverybody
		}
		return ""
	})
	if set.everybody() { // 0.0.0.0/1 and 128.0.0.0/1
		errs = append(errs, &algorithms.FieldError{Field: field, Value: cidrs, Reason: notEverybody})
	}
	return set, errs
}

// parseCIDRs is the set of all cidrs, and what is wrong with them. refuse may
// have a reason of its own.
func parseCIDRs(field string, cidrs []string, refuse func(netip.Prefix) string) (addrSet, []error) {
	prefixes := make([]netip.Prefix, 0, len(cidrs))
	var errs []error
	for i, s := range cidrs {
		p, reason := parseCIDR(s)
		if p.IsValid() && refuse != nil && refuse(p) != "" {
			reason = refuse(p)
		}
		if reason != "" {
			errs = append(errs, &algorithms.FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Value: s, Reason: reason})
			continue
		}
		prefixes = append(prefixes, p)
	}
	return newAddrSet(prefixes), errs
}

// parseCIDR reads a range or an address. The reason says what is wrong with it,
// and is empty where nothing is.
func parseCIDR(s string) (p netip.Prefix, reason string) {
	// Zones first: ParsePrefix would refuse one without saying so.
	if strings.Contains(s, "%") {
		return p, "must have no zone: zones are dropped before addresses are compared"
	}
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return p, "must be an IP address, or a range such as 10.0.0.0/8; each of several is an element of its own"
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), ""
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, "must be a range such as 10.0.0.0/8 or 2001:db8::/32, or an IP address; each of several is an element of its own"
	}
	// Addresses are unmapped before they are compared, so a mapped range would
	// match nobody.
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, "an IPv4-mapped range must have at least /96: below that it isn't IPv4 alone"
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if m := p.Masked(); m != p {
		return p, fmt.Sprintf("must have no bits set beyond /%d: write %v for the range or %v for the address", p.Bits(), m, p.Addr())
	}
	return p, ""
}
