package keyfunc_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// What begins as an address does is not one yet.
func TestNoAddress(t *testing.T) {
	proxies := trust(t, "10.0.0.0/8")
	for _, s := range []string{
		"1", "a", "f:", ":", ":::", "::1::", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "1.2.3.4/32", "0x1.2.3.4",
		"1.2.3.4:", "1.2.3.4:-1", "1.2.3.4:123456", "1.2.3.4: 80", "1.2.3.4:80:80", "1.2.3.4:_", "1.2.3.4:_a:b", "1.2.3.4:_é", "1.2.3.4:_a b",
		"1.2.3.4%eth0", "[1.2.3.4%eth0]:80", "%eth0", "::%eth0", "fe80::1%", "[fe80::1%]", "[fe80::1%]:80",
		"2001:db8::1:80000", "2001:db8::g", "2001:db8:::1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::",
		"[2001:db8::1", "2001:db8::1]", "[2001:db8::1]80", "[2001:db8::1]:", "[2001:db8::1]:x", "[2001:db8::1]:80x", "[[2001:db8::1]]", "[2001:db8::1] :80",
		"[]", "[]:80", "[:80", "]", "[", "", "::", "[::]", "0.0.0.0", "::ffff:0.0.0.0", "[::ffff:0:0%x]:80", "0:0:0:0:0:0:0:0",
		"１.2.3.4", "1.2.3.4\x00", "1.2.3.4,", "unknown", "_1.2.3.4", "localhost", "@", "/run/x", "-1", "+1.2.3.4",
		`"1.2.3.4`, `1.2.3.4"`, `""1.2.3.4""`, `'1.2.3.4'`, `"`, `""`, `"1.2.3.4":80`,
	} {
		wantClient(t, "peer", keyfunc.Trust{}, "", headers(s, "X"))
		if s != "" && !strings.Contains(s, ",") {
			wantClient(t, "X-Forwarded-For", proxies, "10.0.0.2", headers("10.0.0.2:1", "X-Forwarded-For", "198.51.100.1", s+",10.0.0.3"))
		}
	}
	// Quotes are for headers.
	wantClient(t, "peer", keyfunc.Trust{}, "", headers(`"1.2.3.4"`, "X"))
}

// FuzzNotation writes one address in any way there is: its key is the same, from
// each place where an address may stand.
func FuzzNotation(f *testing.F) {
	for i, a := range notationSeeds {
		hi, lo := halves(netip.MustParseAddr(a))
		f.Add(hi, lo, uint16(i*4111), "eth0.100", uint16(i*977))
	}
	check := notationCheck(f)
	f.Fuzz(func(t *testing.T, hi, lo uint64, port uint16, zone string, pick uint16) {
		b := whole(hi, lo)
		all := spellings(b, zoneOf(zone))
		for i := range 4 {
			n := int(pick) + i*41
			written := wrapped(all[n%len(all)], port, zoneOf(zone))
			check(t, b, written[n/len(all)%len(written)])
		}
	})
}

func TestNotations(t *testing.T) {
	check := notationCheck(t)
	for _, a := range notationSeeds {
		b := netip.MustParseAddr(a).As16()
		for _, s := range spellings(b, "eth0.100") {
			for _, s := range wrapped(s, 4711, "eth0.100") {
				check(t, b, s)
			}
		}
	}
}

var notationSeeds = []string{
	"203.0.113.7", "0.0.0.1", "0.0.0.0", "255.255.255.255", "::", "::1", "::203.0.113.7", "2001:db8::1", "2001:db8:1:2:3:4:5:6",
	"2001:db8:0:1:0:0:2:0", "fe80::a", "64:ff9b::cb00:7107", "64:ff9b::", "64:ff9b:0:1::", "::fffe:cb00:7107", "1::ffff:1:2", "ff02::1:ff00:0",
}

func halves(a netip.Addr) (hi, lo uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

func whole(hi, lo uint64) (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	return b
}

// notationCheck holds what is written for the address in b to its key, wherever
// it stands.
func notationCheck(t testing.TB) func(t *testing.T, b [16]byte, written string) {
	const proxy = "10.0.0.2"
	named := keyfunc.IP(made(t, keyfunc.Proxies{CIDRs: []string{proxy}}))
	rfc7239 := keyfunc.IP(made(t, keyfunc.Proxies{CIDRs: []string{proxy}, Header: "Forwarded"}))
	edge := keyfunc.IP(made(t, keyfunc.Proxies{CIDRs: []string{proxy}, Header: "X-Real-IP"}))
	none := keyfunc.IP(keyfunc.Trust{})
	return func(t *testing.T, b [16]byte, written string) {
		want := networkOf(b)
		ofPeer := want
		switch a := netip.AddrFrom16(b).Unmap(); {
		case a.IsUnspecified():
			ofPeer, want = "", proxy // nobody's
		case a == netip.MustParseAddr(proxy):
			return // is passed over
		}
		escaped := ""
		for _, c := range []byte(written) {
			escaped += `\` + string([]byte{c})
		}
		check := func(where string, f keyfunc.Func, r *http.Request, want string) {
			t.Helper()
			k, err := f(r)
			if k != want || (want == "") != errors.Is(err, keyfunc.ErrNoKey) {
				t.Errorf("%s: %q gives %q, %v; want %q", where, written, k, err, want)
			}
		}
		check("RemoteAddr", none, headers(written, "X"), ofPeer)
		for _, s := range []string{written, `"` + written + `"`, `"` + escaped + `"`} {
			check("X-Forwarded-For", named, headers(proxy, "X-Forwarded-For", "198.51.100.66, "+s), want)
			check("Forwarded", rfc7239, headers(proxy, "Forwarded", "for=198.51.100.66, proto=http;for="+s+";by=_x"), want)
			check("X-Real-IP", edge, headers(proxy, "X-Real-IP", s), want)
		}
	}
}

// zoneOf is a zone of letters that stand for those of s.
func zoneOf(s string) string {
	zone := strings.Map(func(c rune) rune {
		return rune("abcxyzABCXYZ0189.-_~%é"[int(c)%22])
	}, s)
	return "z" + zone[:min(len(zone), 100)] // é may be cut in two, which is a zone as well
}

// networkOf is the key of IP for the address in b.
func networkOf(b [16]byte) string {
	hi, lo := halves(netip.AddrFrom16(b))
	switch {
	case hi == 0 && lo>>32 == 0xffff:
		return fmt.Sprintf("%d.%d.%d.%d", b[12], b[13], b[14], b[15])
	case hi == 0x0064_ff9b_0000_0000 && lo>>32 == 0:
		return netip.AddrFrom16(b).String()
	}
	return netip.AddrFrom16(whole(hi, 0)).String() + "/64"
}

// spellings is the address in b in each way to write its digits, and with zones
// where it may have one.
func spellings(b [16]byte, zone string) []string {
	word := func(i int) int { return int(b[2*i])<<8 | int(b[2*i+1]) }
	words := func(format string, n int) []string {
		var s []string
		for i := range n {
			s = append(s, fmt.Sprintf(format, word(i)))
		}
		return s
	}
	dotted := fmt.Sprintf("%d.%d.%d.%d", b[12], b[13], b[14], b[15])
	short := words("%x", 8)
	six := []string{
		netip.AddrFrom16(b).String(),
		strings.Join(words("%x", 6), ":") + ":" + dotted,
		strings.Join(words("%04X", 6), ":") + ":" + dotted,
	}
	for _, format := range []string{"%x", "%X", "%02x", "%03X", "%04x", "%04X"} {
		six = append(six, strings.Join(words(format, 8), ":"))
	}
	for start := range 8 { // each run of zeros may be left out
		for end := start + 1; end <= 8 && word(end-1) == 0; end++ {
			six = append(six, strings.Join(short[:start], ":")+"::"+strings.Join(short[end:], ":"))
		}
	}
	for _, s := range slices.Clone(six) {
		six = append(six, s+"%"+zone, strings.ToUpper(s)+"%0")
	}
	if netip.AddrFrom16(b).Is4In6() {
		six = append(six, dotted)
	}
	return six
}

// wrapped is s with and without brackets and ports.
func wrapped(s string, port uint16, hidden string) []string {
	hidden = strings.Map(func(c rune) rune {
		if c >= 0x80 || strings.ContainsRune("~%", c) {
			return -1
		}
		return c
	}, hidden)
	all := []string{s, "[" + s + "]"}
	for _, port := range []string{fmt.Sprintf(":%d", port), fmt.Sprintf(":%05d", port), ":0", ":_" + hidden} {
		all = append(all, "["+s+"]"+port)
		if !strings.Contains(s, ":") {
			all = append(all, s+port)
		}
	}
	return all
}
