package benchmarks

import (
	"testing"

	"github.com/go-chi/httprate"
)

// BenchmarkClientIP prints what it takes to find the key of a request, of each
// library as it is configured in TestClientIP, and how much of weir's time that
// is. Not all find the same: see there. That of go-chi/httprate contains chi's
// middleware, which puts the address into the request's context; its bare
// KeyByIP is shown too. For gin the context is there already, as in a handler.
func BenchmarkClientIP(b *testing.B) {
	for _, c := range []struct {
		name    string
		proxies []string
		request clientRequest
	}{
		{"no proxy", nil, from("203.0.113.7", "203.0.113.7:40001")},
		{"one proxy", ten, from("203.0.113.66", "10.0.0.5:5000", "X-Forwarded-For: 198.51.100.20, 203.0.113.66")},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := c.request.request()
			var weirs float64
			run := func(name string, key takeKey) {
				b.Run(name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						key(r)
					}
					took := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
					if name == weirPath {
						weirs = took
					}
					if weirs > 0 {
						b.ReportMetric(took/weirs, "×weir")
					}
				})
			}
			for i, w := range configured {
				key := w.set(b, c.proxies)
				if key == nil {
					continue
				}
				// Of two ways of a library, the one that reads the header.
				if i+1 < len(configured) && configured[i+1].library == w.library && configured[i+1].set(b, c.proxies) != nil {
					continue
				}
				run(w.library, key)
			}
			if c.proxies == nil {
				run(httpratePath+" KeyByIP", httprateKey(httprate.KeyByIP))
			}
		})
	}
}
