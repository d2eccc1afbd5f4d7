package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
)

// One Middleware settles a request once, by the status that the outermost sees in
// the end; two settle each what they took.
func TestSettleMountedTwice(t *testing.T) {
	var told []int
	refund := func(code int) bool { told = append(told, code); return serverError(code) }
	silent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	late := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			w.WriteHeader(503)
		})
	}
	c, p := refunding(t, refund)
	m := newMiddleware(t, c)
	if w := serve(m.Handler(late(m.Handler(m.Handler(silent))))); w.Code != 503 || !slices.Equal(told, []int{503}) {
		t.Errorf("%d, Refund was asked for %d", w.Code, told)
	}
	wantLeft(t, c.Store, []*algorithms.Policy{p}, 10)

	told = nil
	other, q := refunding(t, refund)
	serve(m.Handler(late(newMiddleware(t, other).Handler(silent))))
	if !slices.Equal(told, []int{200, 503}) {
		t.Errorf("Refund was asked for %d", told)
	}
	wantLeft(t, c.Store, []*algorithms.Policy{p}, 10)
	wantLeft(t, other.Store, []*algorithms.Policy{q}, 9)
}

// A request that a handler makes with its own's context is of the same charge, and
// its end is not the end of that.
func TestSettleOfBatch(t *testing.T) {
	var told []int
	c, p := refunding(t, func(code int) bool { told = append(told, code); return serverError(code) })
	var h http.Handler
	h = newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/batch" {
			w.WriteHeader(500)
			return
		}
		for range 3 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(r.Context(), "GET", "/", nil))
		}
	}))
	serve(h, func(r *http.Request) { r.URL.Path = "/batch" })
	if !slices.Equal(told, []int{200}) {
		t.Errorf("Refund was asked for %d", told)
	}
	wantLeft(t, c.Store, []*algorithms.Policy{p}, 9)
}

// An adapter can call it for whatever it has served.
func TestSettle(t *testing.T) {
	var told []int
	c, p := refunding(t, func(code int) bool { told = append(told, code); return serverError(code) })
	c.Skip = func(r *http.Request) bool { return r.URL.Path == "/skipped" }
	m := newMiddleware(t, c)
	allow := func(path string) *http.Request {
		r, passes := m.Allow(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		if !passes {
			t.Fatal("refused")
		}
		return r
	}
	m.Settle(httptest.NewRequest("GET", "/", nil), 500)
	m.Settle(allow("/skipped"), 500)
	m.Bypass(true)
	m.Settle(allow("/"), 500)
	m.Bypass(false)
	if told != nil {
		t.Errorf("Refund was asked for %d of what was not counted", told)
	}
	first, second := allow("/"), allow("/")
	m.Settle(second, 500)
	m.Settle(second, 500)
	m.Settle(first, 200)
	m.Settle(first, 500) // the first word counts
	if !slices.Equal(told, []int{500, 200}) {
		t.Errorf("Refund was asked for %d", told)
	}
	wantLeft(t, c.Store, []*algorithms.Policy{p}, 9)
}

// Where nothing counts by outcome, or nothing was charged, the writer stays as it
// is; that goes by the Config that the request began with.
func TestRecordOnlyWhereNeeded(t *testing.T) {
	plain, _ := refunding(t, nil)
	counts, _ := refunding(t, always)
	away, _ := refunding(t, always)
	away.Store, away.Shadow = failing{}, true
	m := newMiddleware(t, plain)
	wrapped := func() bool {
		var inner http.ResponseWriter
		outer := httptest.NewRecorder()
		m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			inner = w
			if err := m.Reconfigure(counts); err != nil {
				t.Error(err)
			}
		})).ServeHTTP(outer, httptest.NewRequest("GET", "/", nil))
		return inner != http.ResponseWriter(outer)
	}
	for i, want := range []bool{false, true} {
		if got := wrapped(); got != want {
			t.Errorf("request %d: wrapped %v, want %v", i, got, want)
		}
	}
	if err := m.Reconfigure(away); err != nil {
		t.Fatal(err)
	}
	if wrapped() {
		t.Error("wrapped where the store is away")
	}
}

// A request is settled by the Config that it began with, in the store that was
// charged.
func TestSettleAfterReconfigure(t *testing.T) {
	before, p := refunding(t, always)
	after, q := refunding(t, func(int) bool { t.Error("the other Config was asked"); return true })
	m := newMiddleware(t, before)
	serve(m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := m.Reconfigure(after); err != nil {
			t.Error(err)
		}
		m.Bypass(true)
		d, _ := middleware.FromContext(r.Context())
		if err := m.Refund(r.Context(), d, "q"); err == nil || !strings.Contains(err.Error(), "q") {
			t.Errorf("a name of neither Config: %v", err)
		}
	})))
	wantLeft(t, before.Store, []*algorithms.Policy{p}, 10)
	wantLeft(t, after.Store, []*algorithms.Policy{q}, 10)
}
