package ginadapter_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/weirgo/weir/keyfunc"
)

// TestClientIPOfGin holds gin to what the package comment says of it, and shows
// the key that keyfunc.IP gives instead.
func TestClientIPOfGin(t *testing.T) {
	const proxy = "10.0.0.2:7000"
	none, ten := []string(nil), []string{"10.0.0.0/8"}
	byDefault := []string{"default"}
	unix := &net.UnixAddr{Name: "/run/x", Net: "unix"}
	for _, tt := range []struct {
		name      string
		trusted   []string
		remote    string
		header    http.Header
		local     net.Addr
		gin, weir string // weir "" is no key
	}{
		{"by default who connects is believed", byDefault, "203.0.113.7:1", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, nil,
			"198.51.100.1", "203.0.113.7"},
		{"and the left end of the list, which is the client's", byDefault, proxy, http.Header{"X-Forwarded-For": {"198.51.100.1, 203.0.113.7"}}, nil,
			"198.51.100.1", "10.0.0.2"},
		{"nobody is believed where that is said", none, "203.0.113.7:1", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, nil,
			"203.0.113.7", "203.0.113.7"},
		{"behind a proxy that is named the client is found", ten, proxy, http.Header{"X-Forwarded-For": {"198.51.100.1, 203.0.113.7"}}, nil,
			"203.0.113.7", "203.0.113.7"},
		{"also on several lines", ten, proxy, http.Header{"X-Forwarded-For": {"198.51.100.1, 10.0.0.5", "203.0.113.7"}}, nil,
			"203.0.113.7", "203.0.113.7"},
		{"IPv6 is whole", ten, "[2001:db8:1:2::3]:1", nil, nil,
			"2001:db8:1:2::3", "2001:db8:1:2::/64"},
		{"and in the header's spelling", ten, proxy, http.Header{"X-Forwarded-For": {"2001:DB8:1:2:0::3"}}, nil,
			"2001:DB8:1:2:0::3", "2001:db8:1:2::/64"},
		{"as is mapped IPv4", ten, proxy, http.Header{"X-Forwarded-For": {"::ffff:203.0.113.7"}}, nil,
			"::ffff:203.0.113.7", "203.0.113.7"},
		{"an address with a port is none", ten, proxy, http.Header{"X-Forwarded-For": {"203.0.113.7:38792"}}, nil,
			"10.0.0.2", "203.0.113.7"},
		{"and X-Real-IP is asked instead", ten, proxy, http.Header{"X-Forwarded-For": {"203.0.113.7:38792"}, "X-Real-Ip": {"198.51.100.1"}}, nil,
			"198.51.100.1", "203.0.113.7"},
		{"as for what is no address", ten, proxy, http.Header{"X-Forwarded-For": {"203.0.113.7, unknown"}, "X-Real-Ip": {"198.51.100.1"}}, nil,
			"198.51.100.1", "10.0.0.2"},
		{"as for a zone", ten, proxy, http.Header{"X-Forwarded-For": {"fe80::1%eth0"}, "X-Real-Ip": {"198.51.100.1"}}, nil,
			"198.51.100.1", "fe80::/64"},
		{"as for a blank element", ten, proxy, http.Header{"X-Forwarded-For": {"203.0.113.7,"}, "X-Real-Ip": {"198.51.100.1"}}, nil,
			"198.51.100.1", "203.0.113.7"},
		{"a peer with a zone is empty", ten, "[fe80::1%eth0]:1", nil, nil, "", "fe80::/64"},
		{"a peer without a port too", ten, "203.0.113.7", nil, nil, "", "203.0.113.7"},
		{"on a Unix socket any peer is believed", none, "@", http.Header{"X-Forwarded-For": {"203.0.113.7"}}, unix, "203.0.113.7", ""},
		{"and one without a header is the text of nil", none, "@", nil, unix, "<nil>", ""},
	} {
		g := engine()
		trust := keyfunc.Trust{}
		if !slices.Equal(tt.trusted, byDefault) {
			if err := g.SetTrustedProxies(tt.trusted); err != nil {
				t.Fatal(err)
			}
			if tt.trusted != nil {
				var err error
				if trust, err = keyfunc.TrustProxies(tt.trusted...); err != nil {
					t.Fatal(err)
				}
			}
		}
		g.GET("/", func(c *gin.Context) { c.String(200, c.ClientIP()) })
		r := httptest.NewRequest("GET", "/", nil)
		if r.RemoteAddr = tt.remote; tt.header != nil {
			r.Header = tt.header
		}
		if tt.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if got := w.Body.String(); got != tt.gin {
			t.Errorf("%s: gin gives %q, want %q", tt.name, got, tt.gin)
		}
		if got, _ := keyfunc.IP(trust)(r); got != tt.weir {
			t.Errorf("%s: the key is %q, want %q", tt.name, got, tt.weir)
		}
	}
}
