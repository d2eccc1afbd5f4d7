package middleware_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

func in(t *testing.T, cidrs ...string) keyfunc.Match {
	t.Helper()
	m, err := keyfunc.In(keyfunc.Trust{}, cidrs...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestExemptAndBlock(t *testing.T) {
	var log bytes.Buffer
	s := &seen{Store: memstore.New(memstore.Config{})}
	m := newMiddleware(t, middleware.Config{
		Store:  s,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Rules:  []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.IP(keyfunc.Trust{})}},
		Exempt: in(t, "10.0.0.0/8", "203.0.113.9"),
		Block:  in(t, "203.0.113.0/24", "2001:db8::/32"),
	})
	from := func(remote string) *httptest.ResponseRecorder {
		return serve(m.Handler(ok), func(r *http.Request) { r.RemoteAddr = remote })
	}
	for _, tt := range []struct {
		remote  string
		status  int
		charged int
	}{
		{"10.1.2.3:1", 200, 0},
		{"10.1.2.3:1", 200, 0},
		{"203.0.113.9:1", 200, 0}, // exempt comes first
		{"203.0.113.7:1", 403, 0},
		{"[2001:db8::1]:1", 403, 0},
		{"[::ffff:203.0.113.7]:1", 403, 0},
		{"198.51.100.1:1", 200, 1},
		{"198.51.100.1:1", 429, 1},
		{"@", 400, 0}, // whom nobody knows could be meant, and is not exempt
	} {
		before := len(s.charges)
		w := from(tt.remote)
		if got := len(s.charges) - before; w.Code != tt.status || got != tt.charged {
			t.Errorf("%s: %d with %d charges, want %d with %d", tt.remote, w.Code, got, tt.status, tt.charged)
		}
		if limited := w.Header().Get("X-RateLimit-Limit") != ""; limited != (tt.charged > 0) {
			t.Errorf("%s: headers %v", tt.remote, w.Header())
		}
		if w.Code == 403 && (w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Retry-After") != "" || w.Body.String() != "Forbidden.\n") {
			t.Errorf("%s: %v %q", tt.remote, w.Header(), w.Body)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log: %s", &log)
	}

	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "203.0.113.7:1"
	if d, err := m.Check(r); !errors.Is(err, middleware.ErrBlocked) || d.Refused != -1 {
		t.Errorf("Check: %v, %v", d, err)
	}
	r.RemoteAddr = "10.0.0.1:1"
	if d, err := m.Check(r); err != nil || d.Refused != -1 {
		t.Errorf("Check: %v, %v", d, err)
	}
}

// A failure to find out exempts nobody and lets nobody past Block.
func TestMatchFails(t *testing.T) {
	var log bytes.Buffer
	failed := func(*http.Request) (bool, error) { return true, errors.New("secret detail") }
	c := middleware.Config{
		Store:  memstore.New(memstore.Config{}),
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Rules:  []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("k")}},
		Exempt: failed,
	}
	h := newMiddleware(t, c).Handler(ok)
	if a, b := serve(h), serve(h); a.Code != 200 || b.Code != 429 {
		t.Errorf("Exempt fails: %d, %d; want a limit", a.Code, b.Code)
	}
	c.Exempt, c.Block = nil, failed
	w := serve(newMiddleware(t, c).Handler(ok))
	if w.Code != 503 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret detail") {
		t.Errorf("Block fails: %d %q; the log: %s", w.Code, w.Body, &log)
	}
}

// What a Key sees: the decision of the Middleware around it, none of its own.
func TestDecisionInKey(t *testing.T) {
	var got []int
	key := func(r *http.Request) (string, error) {
		d, ok := middleware.FromContext(r.Context())
		if !ok {
			got = append(got, -1)
		} else {
			got = append(got, int(d.Results[0].Limit))
		}
		return "k", nil
	}
	rules := func(name string, n int64) middleware.Config {
		return middleware.Config{
			Store: memstore.New(memstore.Config{}),
			Rules: []middleware.Rule{{Policy: policy(t, name, algorithms.PerHour(n)), Key: key}},
		}
	}
	outer, inner := newMiddleware(t, rules("outer", 7)), newMiddleware(t, rules("inner", 9))
	var seen int64
	serve(outer.Handler(inner.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d, _ := middleware.FromContext(r.Context())
		seen = d.Results[0].Limit
	}))))
	if len(got) != 2 || got[0] != -1 || got[1] != 7 || seen != 9 {
		t.Errorf("the keys saw %v, the handler %d; want -1, 7 and 9", got, seen)
	}
}

// Check leaves the request as its keys left it: a body that one has read is put
// back.
func TestCheckKeepsTheBody(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.JSON("phone")}},
	})
	const body = `{"phone":"+12025550142"}`
	r := httptest.NewRequest("POST", "/", strings.NewReader(body))
	ctx := r.Context()
	if _, err := m.Check(r); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil || b.String() != body || r.Context() != ctx {
		t.Errorf("%q, %v", &b, err)
	}
}

// Longer keys are hashed, those of a ban too.
func TestKeysAreBound(t *testing.T) {
	s := &seen{Store: memstore.New(memstore.Config{})}
	long := strings.Repeat("a", 1<<16)
	m := newMiddleware(t, middleware.Config{
		Store:  s,
		Rules:  []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Header("X-A")}},
		Ban:    threeStrikes(t),
		BanKey: keyfunc.Header("X-B"),
	})
	serve(m.Handler(ok), func(r *http.Request) { r.Header.Set("X-A", long+"1"); r.Header.Set("X-B", long+"2") })
	serve(m.Handler(ok), func(r *http.Request) { r.Header.Set("X-A", long+"2"); r.Header.Set("X-B", long+"1") })
	charges := slices.Concat(s.charges...)
	if len(charges) != 4 {
		t.Fatalf("%d charges", len(charges))
	}
	for i, want := range []string{long + "1", long + "2", long + "2", long + "1"} {
		if k := charges[i].Key; k != keyfunc.Bound(want) || len(k) > keyfunc.MaxKey {
			t.Errorf("charge %d: key of %d bytes", i, len(k))
		}
	}
}
