package keyfunc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// BenchmarkIP shows what an address costs: the aim is at most 150 ns and one
// allocation without a proxy, and no more than what 4 KiB cost however long a
// header is.
func BenchmarkIP(b *testing.B) {
	none, proxies := keyfunc.IP(keyfunc.Trust{}), keyfunc.IP(trust(b, "10.0.0.0/8"))
	rfc7239 := keyfunc.IP(made(b, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: "Forwarded"}))
	edge := keyfunc.IP(made(b, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: "X-Real-IP"}))
	hops := strings.Repeat("10.0.0.3, ", 1<<16/10)
	quotes := `x="` + strings.Repeat(`\",`, 1<<16/3) + `"`
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
		{"64 KiB of commas", proxies, "10.0.0.2:1234", []string{"X-Forwarded-For: " + strings.Repeat(",", 1<<16)}},
		{"edge", edge, "10.0.0.2:1234", []string{"X-Real-IP: 203.0.113.7"}},
		{"Forwarded", rfc7239, "10.0.0.2:1234", []string{`Forwarded: for=198.51.100.1, for="203.0.113.7:80";proto=https`}},
		{"Forwarded, 64 KiB of one element", rfc7239, "10.0.0.2:1234", []string{"Forwarded: " + quotes}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := from(bb.remote, bb.lines...)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = bb.f(r) // of a list that is too long, an error
			}
		})
	}
}

// BenchmarkIn shows that thousands of ranges cost little more than one.
func BenchmarkIn(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var cidrs []string
			for i := range n {
				cidrs = append(cidrs, fmt.Sprintf("10.%d.%d.0/25", i/256, i%256))
			}
			m := in(b, keyfunc.Trust{}, cidrs...)
			r := from("10.0.0.1:1234")
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := m(r); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}
