package middleware_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// ring is a Middleware of one window of a minute, to be put around others.
type ring struct {
	count   int64
	headers middleware.Headers
	change  func(*middleware.Rule)
}

// around puts rings around h, the first outermost, with policies a, b, c and so on.
func around(t *testing.T, clock *storetest.Clock, h http.Handler, rings ...ring) http.Handler {
	t.Helper()
	for i, r := range slices.Backward(rings) {
		rule := with(t, string(rune('a'+i)), algorithms.FixedWindow{}, per(r.count, time.Minute, 0))
		if r.change != nil {
			r.change(&rule)
		}
		h = newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{Clock: clock.Now}), Rules: []middleware.Rule{rule}, Headers: r.headers,
		}).Handler(h)
	}
	return h
}

// told are the headers of w that tell of limits, without the body's.
func told(w *httptest.ResponseRecorder) map[string]string {
	all := map[string]string{}
	for name, values := range w.Header() {
		if !slices.Contains([]string{"Content-Type", "X-Content-Type-Options", "Cache-Control"}, name) {
			all[strings.ReplaceAll(name, "X-Ratelimit", "X")] = strings.Join(values, " | ")
		}
	}
	return all
}

// Different Middlewares tell of themselves, and where they use the same names the
// strictest does.
func TestNestedHeaders(t *testing.T) {
	var (
		mine      = middleware.Headers{Prefix: "My-"}
		draft     = middleware.Headers{Dialect: middleware.Draft11}
		both      = middleware.Headers{Dialect: middleware.XRateLimit | middleware.Draft11}
		never     = middleware.Headers{When: middleware.Never}
		onRefusal = middleware.Headers{When: middleware.OnRefusal}
		exposed   = middleware.Headers{Prefix: "My-", Expose: true}
		exposedTo = middleware.Headers{Dialect: middleware.Draft11, Expose: true}
	)
	for name, c := range map[string]struct {
		rings []ring
		want  []map[string]string // of the first request, of the second a second later
	}{
		"outer stricter": {[]ring{{count: 5}, {count: 9}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}, {"X-Limit": "5", "X-Remaining": "3", "X-Reset": "59"}}},
		"inner stricter": {[]ring{{count: 9}, {count: 5}}, []map[string]string{{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}}},
		"alike: the outer stays": {[]ring{{count: 5}, {count: 5}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}}},
		"other names between": {[]ring{{count: 5}, {count: 7, headers: mine}, {count: 9}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60", "My-Limit": "7", "My-Remaining": "6", "My-Reset": "60"}}},
		"other names in turn": {[]ring{{count: 5}, {count: 7, headers: mine}, {count: 3}, {count: 2, headers: mine}}, []map[string]string{
			{"X-Limit": "3", "X-Remaining": "2", "X-Reset": "60", "My-Limit": "2", "My-Remaining": "1", "My-Reset": "60"}}},
		"the strictest is the third from inside": {[]ring{{count: 9}, {count: 5}, {count: 7}, {count: 8}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}}},
		"the second of four": {[]ring{{count: 5}, {count: 3}, {count: 9}, {count: 4}}, []map[string]string{
			{"X-Limit": "3", "X-Remaining": "2", "X-Reset": "60"}}},
		"alike but for the limit": {[]ring{{count: 5}, {count: 6, change: costing(2)}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}}},
		"draft inside": {[]ring{{count: 5}, {count: 2, headers: draft}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60", "Ratelimit-Policy": `"b";q=2;w=60`, "Ratelimit": `"b";r=1;t=60`}}},
		"draft outside": {[]ring{{count: 2, headers: draft}, {count: 5}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60", "Ratelimit-Policy": `"a";q=2;w=60`, "Ratelimit": `"a";r=1;t=60`}}},
		"draft between": {[]ring{{count: 5}, {count: 2, headers: draft}, {count: 7}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60", "Ratelimit-Policy": `"b";q=2;w=60`, "Ratelimit": `"b";r=1;t=60`}}},
		"both, twice": {[]ring{{count: 5, headers: both}, {count: 2, headers: both}}, []map[string]string{
			{"X-Limit": "2", "X-Remaining": "1", "X-Reset": "60", "Ratelimit-Policy": `"a";q=5;w=60 | "b";q=2;w=60`, "Ratelimit": `"a";r=4;t=60 | "b";r=1;t=60`}}},
		"never inside": {[]ring{{count: 5}, {count: 1, headers: never}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"},
			{"X-Limit": "5", "X-Remaining": "3", "X-Reset": "59", "Retry-After": "59"}}}, // what it says is true
		"never outside": {[]ring{{count: 1, headers: never}, {count: 5}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}, {"Retry-After": "59"}}},
		"never between": {[]ring{{count: 5}, {count: 1, headers: never}, {count: 7}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}}},
		"on refusal inside": {[]ring{{count: 5}, {count: 1, headers: onRefusal}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"},
			{"X-Limit": "1", "X-Remaining": "0", "X-Reset": "59", "Retry-After": "59"}}},
		"on refusal outside": {[]ring{{count: 1, headers: onRefusal}, {count: 5}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"},
			{"X-Limit": "1", "X-Remaining": "0", "X-Reset": "59", "Retry-After": "59"}}},
		"on refusal both": {[]ring{{count: 5, headers: onRefusal}, {count: 1, headers: onRefusal}}, []map[string]string{
			{}, {"X-Limit": "1", "X-Remaining": "0", "X-Reset": "59", "Retry-After": "59"}}},
		"on refusal, and the outer one has nothing left": {[]ring{{count: 2}, {count: 1, headers: onRefusal}}, []map[string]string{
			{"X-Limit": "2", "X-Remaining": "1", "X-Reset": "60"},
			{"X-Limit": "1", "X-Remaining": "0", "X-Reset": "59", "Retry-After": "59"}}},
		"nothing decided outside": {[]ring{{count: 1, change: unheld}, {count: 5}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}}},
		"nothing decided inside": {[]ring{{count: 5}, {count: 1, change: unheld}}, []map[string]string{
			{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}}},
		"nothing decided between": {[]ring{{count: 3}, {count: 1, change: unheld}, {count: 5}}, []map[string]string{
			{"X-Limit": "3", "X-Remaining": "2", "X-Reset": "60"}}},
		"nothing decided at all": {[]ring{{count: 1, change: unheld}, {count: 1, change: shadow}}, []map[string]string{{}, {}}},
		"exposed alike": {[]ring{{count: 5, headers: exposed}, {count: 9, headers: exposed}}, []map[string]string{
			{"My-Limit": "5", "My-Remaining": "4", "My-Reset": "60", "Access-Control-Expose-Headers": "My-Limit, My-Remaining, My-Reset, Retry-After"}}},
		"exposed apart": {[]ring{{count: 5, headers: exposed}, {count: 9, headers: exposedTo}}, []map[string]string{
			{"My-Limit": "5", "My-Remaining": "4", "My-Reset": "60", "Ratelimit-Policy": `"b";q=9;w=60`, "Ratelimit": `"b";r=8;t=60`,
				"Access-Control-Expose-Headers": "My-Limit, My-Remaining, My-Reset, Retry-After | RateLimit, RateLimit-Policy, Retry-After"}}},
	} {
		clock := storetest.NewClock()
		h := around(t, clock, ok, c.rings...)
		for i, want := range c.want {
			if got := told(serve(h)); !maps.Equal(got, want) {
				t.Errorf("%s, request %d: %v, want %v", name, i, got, want)
			}
			clock.Advance(second)
		}
	}
}

// An answer of its own that a handler makes with the context of its request has the
// headers of those around it, too.
func TestNestedAnswers(t *testing.T) {
	clock := storetest.NewClock()
	inner := around(t, clock, ok, ring{count: 9})
	h := around(t, clock, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w := httptest.NewRecorder()
		inner.ServeHTTP(w, httptest.NewRequestWithContext(r.Context(), "GET", "/part", nil))
		if got := told(w); !maps.Equal(got, map[string]string{"X-Limit": "5", "X-Remaining": "4", "X-Reset": "60"}) {
			t.Error(got)
		}
	}), ring{count: 7}, ring{count: 5})
	serve(h)
}

// What was said of resets before a request was held is brought up to date, whoever
// has said it, and no more than once.
func TestNestedHeld(t *testing.T) {
	for name, inside := range map[string]middleware.Headers{
		"other names": {Prefix: "Q-"}, "draft": {Dialect: middleware.Draft11}, "never": {When: middleware.Never}, "on refusal": {When: middleware.OnRefusal},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := paced(t, algorithms.LeakyBucket{}, per(1, 10*second, 4))
			c.Rules[0].Cost, c.Headers = nil, inside
			clock := storetest.NewClock() // of the rings, which stands still
			h := around(t, clock, newMiddleware(t, c).Handler(around(t, clock, ok, ring{count: 8})),
				ring{count: 7}, ring{count: 5}, ring{count: 6, headers: middleware.Headers{Prefix: "My-"}},
				ring{count: 1, change: unheld, headers: middleware.Headers{Prefix: "No-"}})
			for i := range 3 {
				got := told(serve(h))
				remaining, reset := string(rune('4'-i)), map[int]string{0: "60", 1: "50", 2: "50"}[i]
				if got["X-Limit"] != "5" || got["X-Remaining"] != remaining || got["X-Reset"] != reset || got["My-Limit"] != "6" || got["My-Reset"] != reset || got["No-Limit"] != "" {
					t.Errorf("%s, request %d: %v", name, i, got)
				}
			}
		})
	}
}

// Retry-After is right for all Middlewares that a request has to get past: those
// around the one that refuses it have charged it already.
func TestNestedRetryAfter(t *testing.T) {
	refunding := func(rule *middleware.Rule) { rule.Refund = func(status int) bool { return status == 429 } }
	for name, c := range map[string]struct {
		rings []ring
		want  string
	}{
		"enough outside":          {[]ring{{count: 3}, {count: 1, change: every(second)}}, "1"},
		"nothing left outside":    {[]ring{{count: 2}, {count: 1, change: every(second)}}, "60"},
		"nothing left further":    {[]ring{{count: 2}, {count: 9}, {count: 1, change: every(second)}}, "60"},
		"longer inside":           {[]ring{{count: 2, change: every(9 * second)}, {count: 1}}, "60"},
		"on trial outside":        {[]ring{{count: 1, change: shadow}, {count: 1, change: every(second)}}, "1"},
		"given back outside":      {[]ring{{count: 2, change: refunding}, {count: 1, change: every(second)}}, "1"},
		"never":                   {[]ring{{count: 2}, {count: 1, change: costing(2)}}, ""},
		"nothing said inside":     {[]ring{{count: 2}, {count: 1, change: every(second), headers: middleware.Headers{When: middleware.Never}}}, "60"},
		"nothing left but inside": {[]ring{{count: 9}, {count: 9}, {count: 1, change: every(5 * second)}}, "5"},
	} {
		h := around(t, storetest.NewClock(), ok, c.rings...)
		serve(h)
		w := serve(h)
		wantHeaders(t, w, map[string]string{"Retry-After": c.want})
		if body := w.Body.String(); w.Code != 429 || c.want != "" && !strings.Contains(body, " in "+c.want+" second") {
			t.Errorf("%s: %d %q", name, w.Code, body)
		}
	}
	synctest.Test(t, func(t *testing.T) { // a wait goes on while the request is held
		c := paced(t, algorithms.LeakyBucket{}, per(1, 10*second, 4))
		c.Rules[0].Cost = nil
		h := around(t, storetest.NewClock(), newMiddleware(t, c).Handler(around(t, storetest.NewClock(), ok, ring{count: 1, change: every(second)})), ring{count: 2})
		serve(h)
		wantHeaders(t, serve(h), map[string]string{"Retry-After": "50"})
	})
}

// every changes the period of a rule, costing its cost.
func every(period time.Duration) func(*middleware.Rule) {
	return func(rule *middleware.Rule) {
		l := rule.Policy.Limit()
		rule.Policy, _ = algorithms.NewPolicy(rule.Policy.Name(), rule.Policy.Algorithm(), per(l.Count, period, 0))
	}
}

func costing(n int64) func(*middleware.Rule) {
	return func(rule *middleware.Rule) { rule.Cost = func(*http.Request) int64 { return n } }
}
