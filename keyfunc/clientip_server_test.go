package keyfunc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// Who serves on what is said by the server of net/http, if there is one.
func TestUnixByLocalAddr(t *testing.T) {
	tr := made(t, keyfunc.Proxies{Unix: true})
	for _, tt := range []struct {
		local  any
		remote string
		want   string
	}{
		{&net.UnixAddr{Net: "unix", Name: "/run/weir.sock"}, "@", "203.0.113.9"},
		{&net.UnixAddr{Net: "unix", Name: "/run/weir.sock"}, `C:\proxy.sock`, "203.0.113.9"},
		{&net.UnixAddr{Net: "unix", Name: "/run/weir.sock"}, "192.0.2.1", "192.0.2.1"}, // somebody has found it already
		{&net.UnixAddr{Net: "unixpacket", Name: "/run/weir.sock"}, "", "203.0.113.9"},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, "@", ""},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, "", ""},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, "/run/proxy.sock", ""},
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, "192.0.2.1:1", "192.0.2.1"},
		{nil, "@", "203.0.113.9"},
		{nil, "proxy.sock", ""},
		{nil, `C:\proxy.sock`, ""},
		{"unix", "proxy.sock", ""}, // no net.Addr
	} {
		r := from(tt.remote, "X-Forwarded-For: 203.0.113.9")
		if tt.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
		}
		wantClient(t, fmt.Sprintf("at %v", tt.local), tr, tt.want, r)
	}
}

// seen is what ClientIP finds in one request to a real server, by each of trusts.
func seen(t *testing.T, trusts map[string]keyfunc.Trust, rewrite *string, ln net.Listener, local net.Addr) (remote string, got map[string]string) {
	t.Helper()
	done := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(done)
		if remote = r.RemoteAddr; rewrite != nil { // as some middlewares do
			r.RemoteAddr = *rewrite
		}
		got = make(map[string]string)
		for name, tr := range trusts {
			a, err := tr.ClientIP(r)
			if got[name] = a.String(); err != nil {
				got[name] = ""
			}
		}
	}))
	srv.Listener.Close()
	srv.Listener = ln
	srv.Start()
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			d := net.Dialer{LocalAddr: local}
			return d.DialContext(ctx, ln.Addr().Network(), ln.Addr().String())
		},
	}}
	rq, _ := http.NewRequest("GET", "http://weir.example/", nil)
	rq.Header.Set("X-Forwarded-For", "198.51.100.1, 203.0.113.9")
	rq.Header.Set("Forwarded", `for=198.51.100.1;host=", for="203.0.113.9:80"`)
	rq.Header["x-real-ip"] = []string{"203.0.113.9"} // canonical when it comes in
	resp, err := client.Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	<-done
	return remote, got
}

func TestRealServer(t *testing.T) {
	trusts := map[string]keyfunc.Trust{
		"none":       {},
		"loopback":   trust(t, "127.0.0.0/8", "::1"),
		"unix":       made(t, keyfunc.Proxies{Unix: true}),
		"unix, 7239": made(t, keyfunc.Proxies{Unix: true, Header: "Forwarded"}),
		"unix, edge": made(t, keyfunc.Proxies{Unix: true, Header: "X-REAL-IP"}),
		"any":        made(t, keyfunc.Proxies{AnyPeer: true, Hops: 1}),
	}
	want := func(name, remote string, got map[string]string, none, loopback, unix, anyPeer string) {
		t.Helper()
		for trust, want := range map[string]string{
			"none": none, "loopback": loopback, "any": anyPeer,
			"unix": unix, "unix, 7239": unix, "unix, edge": unix,
		} {
			if got[trust] != want {
				t.Errorf("%s (RemoteAddr %q), trust %s: got %q, want %q", name, remote, trust, got[trust], want)
			}
		}
	}
	const client, self = "203.0.113.9", "127.0.0.1"

	t.Run("TCP", func(t *testing.T) {
		listen := func() net.Listener {
			ln, err := net.Listen("tcp", self+":0")
			if err != nil {
				t.Fatal(err)
			}
			return ln
		}
		remote, got := seen(t, trusts, nil, listen(), nil)
		want("a TCP socket", remote, got, self, client, self, client)
		// Nothing in RemoteAddr makes a Unix socket of it.
		for _, rewritten := range []string{"", "@", "/run/proxy.sock", "@proxy"} {
			_, got = seen(t, trusts, &rewritten, listen(), nil)
			want("a TCP socket", rewritten, got, "", "", "", client)
		}
		rewritten := "192.0.2.1"
		_, got = seen(t, trusts, &rewritten, listen(), nil)
		want("a TCP socket", rewritten, got, rewritten, rewritten, rewritten, client)
	})
	t.Run("Unix", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "weir") // t.TempDir can be too long for a socket
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		locals := map[string]net.Addr{
			"unnamed": nil,
			"named":   &net.UnixAddr{Net: "unix", Name: filepath.Join(dir, "proxy.sock")},
		}
		if runtime.GOOS == "linux" {
			locals["abstract"] = &net.UnixAddr{Net: "unix", Name: "@" + filepath.Base(dir)}
		}
		for name, local := range locals {
			ln, err := net.Listen("unix", filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			remote, got := seen(t, trusts, nil, ln, local)
			want(name, remote, got, "", "", client, client)
		}
	})
}
