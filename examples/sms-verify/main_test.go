package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/keyfunc"
)

// console is what the program prints, while it runs.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // has a value after something was printed
}

func newConsole() *console { return &console{more: make(chan struct{}, 1)} }

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// await waits until the pattern was printed and gives what its group matched.
func (c *console) await(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(10 * time.Second)
	for {
		if m := re.FindStringSubmatch(c.String()); m != nil {
			return m[1]
		}
		select {
		case <-c.more:
		case <-timeout:
			t.Fatalf("%s was not printed in:\n%s", pattern, c)
		}
	}
}

// The program runs as it does from a shell, with what it prints to try.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stdout, stderr := newConsole(), newConsole()
	exit := make(chan int, 1)
	go func() { exit <- run(ctx, []string{"-addr", "127.0.0.1:0"}, stdout, stderr) }()

	url := stdout.await(t, `curl -i '(http://127\.0\.0\.1:[1-9]\d*/api/codes)' -H 'Content-Type: application/json' -d '{"phone":"\+12025550142"}'`)
	if got := post(http.DefaultClient, url, `{"phone":"+12025550142"}`); got != http.StatusAccepted {
		t.Fatalf("status %d, want 202", got)
	}
	code := stdout.await(t, `text message to \*\*\*42: your code is (\d{6})\n`)
	if got := post(http.DefaultClient, url, `{"phone":"+12025550142"}`); got != http.StatusTooManyRequests {
		t.Errorf("status %d, want 429", got)
	}
	verify := strings.TrimSuffix(url, "codes") + "verifications"
	if got := post(http.DefaultClient, verify, `{"phone":"+12025550142","code":"`+code+`"}`); got != http.StatusOK {
		t.Errorf("status %d, want 200", got)
	}

	stop()
	if got := <-exit; got != exitOK {
		t.Errorf("exit code %d, want 0", got)
	}
	if got := stderr.String(); got != "" {
		t.Errorf("stderr: %s", got)
	}
	if strings.Count(stdout.String(), code) != 1 {
		t.Errorf("the code was not printed once:\n%s", stdout)
	}
}

// A request that is being answered when the server is told to stop is finished.
func TestShutdownIsGraceful(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inside, release := make(chan struct{}), make(chan struct{})
	srv := &http.Server{ReadHeaderTimeout: readTimeout, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-release
	})}
	closing := make(chan struct{})
	srv.RegisterOnShutdown(func() { close(closing) })
	served := make(chan error, 1)
	go func() { served <- serveOn(ctx, ln, srv) }()
	status := make(chan int, 1)
	go func() { status <- post(http.DefaultClient, "http://"+ln.Addr().String(), "") }()

	<-inside
	stop()
	select {
	case <-closing:
	case <-time.After(10 * time.Second):
		t.Error("the server was not shut down")
	}
	close(release)
	if got := <-status; got != http.StatusOK {
		t.Errorf("status %d, want 200", got)
	}
	if err := <-served; err != nil {
		t.Errorf("serveOn: %v", err)
	}
}

func TestFlagMistakes(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"-trusted-proxy", "10.0.0.0/8, bogus"}, exitUsage, []string{"-trusted-proxy", `"bogus"`, "must be an IP address"}},
		{[]string{"-trusted-proxy", "10.0.0.0/8", "-trusted-proxy", "10.0.0.1/8"}, exitUsage, []string{"-trusted-proxy", `"10.0.0.1/8"`, "must have no bits set beyond /8"}},
		{[]string{"-trusted-proxy", ""}, exitUsage, []string{"-trusted-proxy", `""`, "must be an IP address"}},
		{[]string{"-region", "usa"}, exitUsage, []string{"-region", `"usa"`, "two capital letters"}},
		{[]string{"-nonsense"}, exitUsage, []string{"-nonsense"}},
		{[]string{"8080"}, exitUsage, []string{`"8080"`}},
		{[]string{"-addr", "nowhere"}, exitError, []string{"-addr", `"nowhere"`, "missing port"}},
	} {
		var stdout, stderr bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) // where it serves, by mistake
		defer stop()
		if got := run(ctx, c.args, &stdout, &stderr); got != c.code {
			t.Errorf("%q: exit code %d, want %d", c.args, got, c.code)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%q: stderr lacks %q: %s", c.args, want, &stderr)
			}
		}
		if stdout.Len() > 0 {
			t.Errorf("%q: stdout: %s", c.args, &stdout)
		}
	}
}

func TestFlags(t *testing.T) {
	var stdout bytes.Buffer
	opts, err := parseFlags([]string{"-trusted-proxy", "10.0.0.0/8, 192.0.2.1", "-trusted-proxy", "2001:db8::/32", "-region", ""}, &stdout)
	if err != nil {
		t.Fatal(err)
	}
	if opts.addr != "127.0.0.1:8080" || opts.region != "" {
		t.Errorf("options %+v", opts)
	}
	for _, proxy := range []string{"10.1.2.3", "192.0.2.1", "2001:db8::1"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = net.JoinHostPort(proxy, "40000")
		r.Header.Set("X-Forwarded-For", home)
		if got, err := keyfunc.IP(opts.trust)(r); got != home || err != nil {
			t.Errorf("behind %s the address is %q, %v", proxy, got, err)
		}
	}
	if got := run(t.Context(), []string{"-h"}, &stdout, &stdout); got != exitOK || !strings.Contains(stdout.String(), "-trusted-proxy") {
		t.Errorf("-h: exit code %d, prints %s", got, &stdout)
	}
}

func TestBaseURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80",
		"[::1]:80":     "http://[::1]:80",
		"0.0.0.0:80":   "http://localhost:80",
		"[::]:80":      "http://localhost:80",
		":80":          "http://localhost:80",
	} {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if a.IP == nil { // as a listener on ":80" reports it
			a.IP = net.IPv6unspecified
		}
		if got := baseURL(a); got != want {
			t.Errorf("baseURL(%s) = %s, want %s", addr, got, want)
		}
	}
}
