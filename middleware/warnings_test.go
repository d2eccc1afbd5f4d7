package middleware_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// warned is a Middleware by key, and its log.
func warned(t testing.TB, key keyfunc.Func) (*middleware.Middleware, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	return newMiddleware(t, middleware.Config{
		Store:  memstore.New(memstore.Config{}),
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Rules:  []middleware.Rule{{Policy: policy(t, "p", algorithms.PerSecond(1000)), Key: key}},
	}), &log
}

// wantCodes holds the log to one warning for each code, with a remedy.
func wantCodes(t *testing.T, log *bytes.Buffer, codes ...string) {
	t.Helper()
	lines := strings.Count(log.String(), "\n")
	if lines != len(codes) {
		t.Errorf("%d warnings, want %q:\n%s", lines, codes, log)
		return
	}
	for _, code := range codes {
		if n := strings.Count(log.String(), "level=WARN"); n != len(codes) ||
			!regexp.MustCompile("code="+code+` remedy=".+"`).Match(log.Bytes()) {
			t.Errorf("want a warning %s with a remedy:\n%s", code, log)
		}
	}
}

func TestForwardingHeadersAreNoticed(t *testing.T) {
	proxied := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	trust, err := keyfunc.TrustProxies("192.0.2.1") // httptest's peer
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  keyfunc.Func
		with func(*http.Request)
		want []string
	}{
		"X-Forwarded-For": {keyfunc.IP(keyfunc.Trust{}), proxied("X-Forwarded-For", "203.0.113.7"), []string{"WEIR101"}},
		"Forwarded":       {keyfunc.IP(keyfunc.Trust{}), proxied("Forwarded", "for=203.0.113.7"), []string{"WEIR101"}},
		"X-Real-IP":       {keyfunc.IP(keyfunc.Trust{}), proxied("X-Real-IP", "203.0.113.7"), []string{"WEIR101"}},
		"inside a Join":   {keyfunc.Join(keyfunc.Route, keyfunc.IP(keyfunc.Trust{})), proxied("X-Forwarded-For", "203.0.113.7"), []string{"WEIR101"}},
		"none":            {keyfunc.IP(keyfunc.Trust{}), proxied("X-Other", "203.0.113.7"), nil},
		"trusted":         {keyfunc.IP(trust), proxied("X-Forwarded-For", "203.0.113.7"), nil},
		"not by address":  {keyfunc.Const("k"), proxied("X-Forwarded-For", "203.0.113.7"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, log := warned(t, c.key)
			for range 3 {
				serve(m.Handler(ok), c.with)
			}
			wantCodes(t, log, c.want...)
			if strings.Contains(log.String(), "203.0.113.7") {
				t.Errorf("the log has an address: %s", log)
			}
		})
	}

	// The one that asks is told, not the one around it; Check tells too.
	outer, outerLog := warned(t, keyfunc.Const("k"))
	inner, innerLog := warned(t, keyfunc.IP(keyfunc.Trust{}))
	serve(outer.Handler(inner.Handler(ok)), proxied("X-Forwarded-For", "203.0.113.7"))
	wantCodes(t, outerLog)
	wantCodes(t, innerLog, "WEIR101")
	m, log := warned(t, keyfunc.IP(keyfunc.Trust{}))
	r, _ := http.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.1:1"
	r.Header.Set("X-Forwarded-For", "203.0.113.7")
	if _, err := m.Check(r); err != nil {
		t.Error(err)
	}
	wantCodes(t, log, "WEIR101")
}

func TestAnyPeerIsNoticed(t *testing.T) {
	trust, err := keyfunc.Proxies{AnyPeer: true, Hops: 1}.Trust()
	if err != nil {
		t.Fatal(err)
	}
	m, log := warned(t, keyfunc.IP(trust))
	for range 3 {
		serve(m.Handler(ok))
	}
	wantCodes(t, log, "WEIR103")
}

func TestOneKeyIsNoticed(t *testing.T) {
	byHeader := func(r *http.Request) (string, error) { return r.Header.Get("X-Client"), nil }
	for name, c := range map[string]struct {
		key     keyfunc.Func
		clients int // of the requests, each in turn
		with    int // the requests in a thousand that have one client
		want    []string
	}{
		"one":                   {byHeader, 1, 1000, []string{"WEIR102"}},
		"nearly all":            {byHeader, 100, 900, []string{"WEIR102"}},
		"less than half":        {byHeader, 100, 300, nil},
		"two in turn":           {byHeader, 2, 0, nil},
		"on purpose":            {keyfunc.Const("all"), 1, 1000, nil},
		"of one route":          {keyfunc.Route, 1, 1000, nil},
		"one of all in a Join":  {keyfunc.Join(keyfunc.Route, byHeader), 1, 1000, []string{"WEIR102"}},
		"one address for First": {keyfunc.First(keyfunc.Header("X-None"), byHeader), 1, 1000, []string{"WEIR102"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, log := warned(t, c.key)
			h := m.Handler(ok)
			for i := range 8_000 {
				client := fmt.Sprint(i % c.clients)
				if i%1000 < c.with {
					client = "the one"
				}
				serve(h, func(r *http.Request) { r.Header.Set("X-Client", client) })
			}
			wantCodes(t, log, c.want...)
			if strings.Contains(log.String(), "the one") {
				t.Errorf("the log has a key: %s", log)
			}
		})
	}
	m, log := warned(t, byHeader)
	for range 1000 {
		serve(m.Handler(ok), func(r *http.Request) { r.Header.Set("X-Client", "the one") })
	}
	wantCodes(t, log) // a thousand are not thousands
}

func TestMiddlewareBuiltInHandler(t *testing.T) {
	middleware.ForgetSites()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	build := func() *middleware.Middleware {
		return newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{}), Logger: logger,
			Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerSecond(1)), Key: keyfunc.Const("k")}},
		})
	}
	for range 10 {
		build()
	}
	wantCodes(t, &log)
	// newMiddleware is the code that calls New, and other tests call it too, but
	// not while they serve.
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { build().Handler(ok).ServeHTTP(w, r) })
	serve(h)
	wantCodes(t, &log) // this one may be kept
	for range 10 {
		serve(h)
	}
	wantCodes(t, &log, "WEIR104")
}

// Each code is explained in docs/warnings.md, and nothing else is.
func TestWarningsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/warnings.md")
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`(?m)^## (WEIR\d+)`).FindAllStringSubmatch(string(page), -1)
	source, err := os.Open("../internal/notice/notice.go")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	text, err := io.ReadAll(source)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`"(WEIR\d+)"`).FindAllStringSubmatch(string(text), -1)
	if len(want) == 0 || len(got) != len(want) {
		t.Fatalf("docs/warnings.md explains %q; the codes are %q", got, want)
	}
	for i := range want {
		if got[i][1] != want[i][1] {
			t.Errorf("heading %d is of %s, want %s", i, got[i][1], want[i][1])
		}
	}
}
