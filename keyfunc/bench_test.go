package keyfunc_test

import (
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// BenchmarkIP shows what an address costs: the aim is at most 150 ns and one
// allocation without a proxy, and no more than what 4 KiB cost however long a
// header is.
func BenchmarkIP(b *testing.B) {
	none, proxies := keyfunc.IP(keyfunc.Trust{}), keyfunc.IP(trust(b, "10.0.0.0/8"))
	hops := strings.Repeat("10.0.0.3, ", 1<<16/10)
	for _, bb := range []struct {
		name   string
		f      keyfunc.Func
		remote string
		lines  []string
	}{
		{"no proxy", none, "203.0.113.7:1234", nil},
		{"no proxy, IPv6", none, "[2001:db8:1:2::3]:1234", nil},
		{"no proxy, forged header", none, "203.0.113.7:1234", []string{"X-Forwarded-For: 198.51.100.1"}},
		{"one proxy", proxies, "10.0.0.2:1234", []string{"X-Forwarded-For: 198.51.100.1, 203.0.113.7"}},
		{"1 KiB of hops", proxies, "10.0.0.2:1234", []string{"X-Forwarded-For: " + hops[:1000]}},
		{"4 KiB of hops", proxies, "10.0.0.2:1234", []string{"X-Forwarded-For: " + hops[:4000]}},
		{"64 KiB of hops", proxies, "10.0.0.2:1234", []string{"X-Forwarded-For: " + hops}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := from(bb.remote, bb.lines...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bb.f(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
