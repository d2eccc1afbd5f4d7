package keyfunc_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// naive tells whether a is in one of prefixes.
func naive(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// covered tells whether every address of p is in one of prefixes.
func covered(prefixes []netip.Prefix, p netip.Prefix) bool {
	overlaps := false
	for _, q := range prefixes {
		if q.Overlaps(p) {
			if overlaps = true; q.Bits() <= p.Bits() {
				return true
			}
		}
	}
	if !overlaps {
		return false
	}
	b := p.Addr().AsSlice()
	low, _ := p.Addr().Prefix(p.Bits() + 1)
	b[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	a, _ := netip.AddrFromSlice(b)
	return covered(prefixes, low) && covered(prefixes, netip.PrefixFrom(a, p.Bits()+1))
}

// lastOf is the last address of p, found by adding one bit at a time.
func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// checkSet holds In, and what TrustProxies says of everybody, to the naive ways.
// Probed are addrs, and those at the edges of the ranges, of 500 at most.
func checkSet(t *testing.T, prefixes []netip.Prefix, written []string, addrs []netip.Addr) {
	t.Helper()
	in, err := keyfunc.In(keyfunc.Trust{}, written...)
	if err != nil {
		t.Fatalf("%q: %v", written, err)
	}
	for i := 0; i < len(prefixes); i += 1 + len(prefixes)/500 {
		first, last := prefixes[i].Addr(), lastOf(prefixes[i])
		addrs = append(addrs, first, last, first.Prev(), last.Next())
	}
	for _, a := range addrs {
		if !a.IsValid() || a.Unmap().IsUnspecified() {
			continue
		}
		want := naive(prefixes, a.Unmap())
		for _, s := range []string{a.String(), netip.AddrFrom16(a.As16()).String()} {
			got, err := in(headers(s, "X"))
			if got != want || err != nil {
				t.Fatalf("%s in %q: got %v, %v; want %v", s, written, got, err, want)
			}
		}
	}
	everybody := covered(prefixes, netip.MustParsePrefix("0.0.0.0/0")) || covered(prefixes, netip.MustParsePrefix("::/0"))
	if _, err := keyfunc.TrustProxies(written...); (err != nil) != everybody {
		t.Fatalf("%q: got %v; everybody: %v", written, err, everybody)
	}
}

// setOf makes ranges of data, mostly such that they touch or overlap: each takes
// four bytes, which say the family, the length and two bytes of the address.
func setOf(data []byte) (prefixes []netip.Prefix, written []string) {
	for ; len(data) >= 4; data = data[4:] {
		kind, bits, x, y := data[0], int(data[1]), data[2], data[3]
		b := make([]byte, 16)
		if kind&1 == 0 {
			b = b[:4]
		}
		if kind&2 == 0 {
			b[0], b[1] = x, y
		} else {
			b[0], b[len(b)-2], b[len(b)-1] = 10, x, y
		}
		if kind&32 != 0 { // the last half of all addresses
			b[0] |= 0x80
		}
		a, _ := netip.AddrFromSlice(b)
		p, _ := a.Prefix(bits % (a.BitLen() + 1))
		if a = p.Addr(); a.Is4In6() { // is IPv4, and has its own notation below
			continue
		}
		prefixes = append(prefixes, p)
		switch single := p.Bits() == a.BitLen(); {
		case kind&4 != 0 && a.Is4():
			s := netip.AddrFrom16(a.As16()).String()
			if kind&8 == 0 || !single {
				s = fmt.Sprintf("%s/%d", s, 96+p.Bits())
			}
			written = append(written, s)
		case kind&8 != 0 && single:
			written = append(written, a.String())
		case kind&16 != 0:
			written = append(written, fmt.Sprintf("%s/%d", a.StringExpanded(), p.Bits()))
		default:
			written = append(written, p.String())
		}
	}
	return prefixes, written
}

func FuzzAddrSet(f *testing.F) {
	for _, data := range []string{
		"\x00\x08\x0a\x00", "\x00\x08\x0a\x00\x00\x10\x0a\x01", "\x00\x01\x00\x00\x00\x01\x80\x00",
		"\x01\x01\x00\x00\x01\x01\x80\x00", "\x00\x00\x00\x00\x01\x00\x00\x00", "\x02\x20\x00\x01\x02\x20\x00\x02\x02\x1f\x00\x04",
		"\x0e\x20\x00\xff\x04\x1f\x01\x00\x02\x18\x01\x00", "\x03\x80\x00\x00\x0b\x80\x00\x01\x13\x7f\x00\x02",
		"\x20\x20\xff\xff\x21\x80\xff\xff\x00\x01\x80\x00", "\x00\x02\x40\x00\x00\x01\x80\x00\x00\x02\x00\x00",
	} {
		f.Add([]byte(data), []byte{10, 0, 1, 2, 255, 255, 255, 255, 0, 0, 0, 1})
	}
	f.Fuzz(func(t *testing.T, data, probes []byte) {
		prefixes, written := setOf(data[:min(len(data), 4*40)])
		if len(written) == 0 {
			return
		}
		var addrs []netip.Addr
		for _, size := range []int{4, 16} {
			for p := probes; len(p) >= size; p = p[size:] {
				a, _ := netip.AddrFromSlice(p[:size])
				addrs = append(addrs, a)
			}
		}
		checkSet(t, prefixes, written, addrs)
	})
}

// A set of thousands is searched as a naive one is.
func TestThousandsOfRanges(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 0))
	for _, size := range []int{1, 2, 3, 10, 100, 3000} {
		for range 1 + 200/size {
			data := make([]byte, 4*size)
			for i := range data {
				data[i] = byte(rnd.Uint32())
				if i%4 == 1 && size > 3 { // long ones, or they hold everything
					data[i] = 32
				}
			}
			prefixes, written := setOf(data)
			if len(written) == 0 {
				continue
			}
			var addrs []netip.Addr
			for range 200 {
				var b [16]byte
				binary.BigEndian.PutUint64(b[:8], rnd.Uint64())
				binary.BigEndian.PutUint64(b[8:], rnd.Uint64())
				addrs = append(addrs, netip.AddrFrom16(b), netip.AddrFrom4([4]byte(b[:4])))
			}
			checkSet(t, prefixes, written, addrs)
		}
	}
}

// Parts of everything, however it is cut up, are everybody; without any one of
// them they are not.
func TestEverybodyInParts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 0))
	for _, all := range []string{"0.0.0.0/0", "::/0"} {
		parts := []netip.Prefix{netip.MustParsePrefix(all)}
		for len(parts) < 60 {
			i := rnd.IntN(len(parts))
			p := parts[i]
			if p.Bits() == p.Addr().BitLen() {
				continue
			}
			low := netip.PrefixFrom(p.Addr(), p.Bits()+1)
			parts[i] = low
			parts = append(parts, netip.PrefixFrom(lastOf(low).Next(), low.Bits()))
		}
		rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		var written []string
		for _, p := range parts {
			written = append(written, p.String())
		}
		if _, err := keyfunc.TrustProxies(written...); err == nil {
			t.Errorf("%q are everybody, and trusted", written)
		}
		for i := range written {
			if _, err := keyfunc.TrustProxies(slices.Delete(slices.Clone(written), i, i+1)...); err != nil {
				t.Errorf("without %s: %v", written[i], err)
			}
		}
	}
}
