package keyfunc

import (
	"errors"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/notice"
)

// IP gives the client's address, as t finds it ([Trust.ClientIP]):
// "203.0.113.7", or for IPv6 the /64 it is in, "2001:db8:1:2::/64", as even a
// home has that many addresses to choose from. [Subnet] has other lengths.
//
// The zero [Trust] takes the socket's peer and reads no header. Behind a proxy
// that is the proxy, and all clients share one budget: say which proxies are
// yours with [TrustProxies] or [Proxies].
//
// The error wraps [ErrNoKey] if the request has no usable address, as on a Unix
// socket.
func IP(t Trust) Func { return Subnet(t, 32, 64) }

// Subnet is [IP] with other lengths: clients of one IPv4 network of v4 bits, 1
// to 32, share a budget, and of one IPv6 network of v6 bits, 1 to 128. A network
// is written with its length, "203.0.113.0/24", one address without. Other
// lengths are a mistake ([Validate]).
//
// A home or a phone often has a /64 and can have a /56 or a /48; a hosting
// customer can have more. Shorter lengths stop who moves about in them, and put
// more strangers together.
//
// An address of the NAT64 range 64:ff9b::/96 (RFC 6052) is masked by v4 bits of
// the IPv4 address in it, and stands as IPv6, "64:ff9b::cb00:7107": each is
// another IPv4 client.
func Subnet(t Trust, v4, v6 int) Func {
	var errs []error
	bad := func(field string, bits int, reason string) {
		errs = append(errs, &algorithms.FieldError{Field: "keyfunc.Subnet: " + field, Value: bits, Reason: reason})
	}
	if v4 < 1 || v4 > 32 {
		bad("v4", v4, "must be 1 to 32 bits; 32 counts each IPv4 address")
	}
	if v6 < 1 || v6 > 128 {
		bad("v6", v6, "must be 1 to 128 bits; 64 is usual, as clients choose the rest")
	}
	if errs != nil {
		return mistake(errors.Join(errs...))
	}
	noticed := new(atomic.Bool)
	return func(r *http.Request) (string, error) {
		if !noticed.Load() {
			if c := t.odd(r); c != "" && notice.Send(r.Context(), c) {
				noticed.Store(true)
			}
		}
		a, err := t.ClientIP(r)
		if err != nil {
			return "", err
		}
		return subnetKey(a, v4, v6), nil
	}
}

// nat64 is the well-known prefix of RFC 6052: its low 32 bits are an IPv4
// address.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// subnetKey is the key of an unmapped address without a zone.
func subnetKey(a netip.Addr, v4, v6 int) string {
	bits := v6
	if a.Is4() {
		bits = v4
	} else if nat64.Contains(a) {
		bits = 96 + v4
	}
	if bits == a.BitLen() {
		return a.String()
	}
	p, _ := a.Prefix(bits)                                           // fails only for lengths an address doesn't have
	var buf [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127")]byte // Prefix.String would allocate twice
	return string(p.AppendTo(buf[:0]))
}
