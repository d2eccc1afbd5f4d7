package middleware_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// scene is requests to one Middleware, and what the answer to the last says in
// whatever dialect.
type scene struct {
	name   string
	config func(*testing.T) middleware.Config
	waits  []time.Duration     // before each request; the first also after a part of a second
	last   func(*http.Request) // changes the last request

	status           int
	limit, remaining string        // of the strictest rule; "" where the headers say nothing
	reset            time.Duration // of it, at the decision
	held             time.Duration
	policies, items  string // of Draft11
	retry            string // Retry-After
}

func rulesOf(rules ...middleware.Rule) func(*testing.T) middleware.Config {
	return func(*testing.T) middleware.Config { return middleware.Config{Rules: rules} }
}

// with is a rule of all requests.
func with(t *testing.T, name string, a algorithms.Algorithm, l algorithms.Limit, change ...func(*middleware.Rule)) middleware.Rule {
	t.Helper()
	rule := middleware.Rule{Policy: policyOf(t, name, a, l), Key: keyfunc.Const("k")}
	for _, f := range change {
		f(&rule)
	}
	return rule
}

func byCost(rule *middleware.Rule) {
	rule.Cost = func(r *http.Request) int64 { return max(1, r.ContentLength) }
}
func shadow(rule *middleware.Rule)     { rule.Shadow = true }
func unheld(rule *middleware.Rule)     { rule.Key = leftOut }
func keyless(rule *middleware.Rule)    { rule.Key = keyfunc.Header("X-None") }
func inBytes(rule *middleware.Rule)    { rule.Unit = "content-bytes" }
func inRequests(rule *middleware.Rule) { rule.Unit = "requests" }
func paces(rule *middleware.Rule)      { rule.Pace = true }

func ofSize(n int64) func(*http.Request) { return func(r *http.Request) { r.ContentLength = n } }

func scenes(t *testing.T) []scene {
	gcra, window, minute := algorithms.GCRA{}, algorithms.FixedWindow{}, time.Minute
	half := per(10, minute, 5)
	banning := func(t *testing.T) middleware.Config {
		ban, err := algorithms.Ban{Strikes: 2, Within: 10 * minute, For: 2 * time.Hour}.Policy("ban")
		if err != nil {
			t.Fatal(err)
		}
		return middleware.Config{Rules: []middleware.Rule{with(t, "p", gcra, per(1, time.Hour, 0))}, Ban: ban}
	}
	return []scene{
		{name: "allowed", config: rulesOf(with(t, "ip", gcra, half, byCost, inRequests)), waits: []time.Duration{0}, status: 200,
			limit: "5", remaining: "4", reset: 6 * second, policies: `"ip";q=5;w=30`, items: `"ip";r=4;t=6`},
		{name: "cost above 1", config: rulesOf(with(t, "ip", gcra, half, byCost, inBytes)), waits: []time.Duration{0, 2 * second}, last: ofSize(3), status: 200,
			limit: "5", remaining: "1", reset: 22 * second, policies: `"ip";q=5;qu="content-bytes";w=30`, items: `"ip";r=1;t=4`},
		{name: "refused", config: rulesOf(with(t, "p", window, per(2, minute, 0))), waits: []time.Duration{0, 0, 12345 * time.Millisecond}, status: 429,
			limit: "2", remaining: "0", reset: 47655 * time.Millisecond, policies: `"p";q=2;w=60`, items: `"p";r=0;t=48`, retry: "48"},
		{name: "refused for its cost", config: rulesOf(with(t, "ip", gcra, half, byCost)), waits: []time.Duration{0, 0}, last: ofSize(5), status: 429,
			limit: "5", remaining: "4", reset: 6 * second, policies: `"ip";q=5;w=30`, items: `"ip";r=4;t=6`, retry: "6"},
		{name: "never passes", config: rulesOf(with(t, "ip", gcra, half, byCost)), waits: []time.Duration{0}, last: ofSize(6), status: 429,
			limit: "5", remaining: "5", policies: `"ip";q=5;w=30`, items: `"ip";r=5`},
		{name: "never passes, and something is taken", config: rulesOf(with(t, "w", window, per(5, minute, 0), byCost)), waits: []time.Duration{0, 10 * second}, last: ofSize(6), status: 429,
			limit: "5", remaining: "4", reset: 50 * second, policies: `"w";q=5;w=60`, items: `"w";r=4;t=50`},
		{name: "the refusal that bans", config: banning, waits: []time.Duration{0, 0, minute}, status: 429,
			limit: "2", remaining: "0", reset: 2 * time.Hour, policies: `"p";q=1;w=3600, "ban";q=2;w=600`, items: `"p";r=0;t=3540, "ban";r=0;t=7200`, retry: "7200"},
		{name: "banned", config: banning, waits: []time.Duration{0, 0, minute, minute + second/2, time.Hour}, status: 429,
			limit: "2", remaining: "0", reset: time.Hour - minute - second/2, policies: `"p";q=1;w=3600, "ban";q=2;w=600`, items: `"p";r=1, "ban";r=0;t=3540`, retry: "3540"},
		{name: "before the ban", config: banning, waits: []time.Duration{0, 0}, status: 429,
			limit: "1", remaining: "0", reset: time.Hour, policies: `"p";q=1;w=3600`, items: `"p";r=0;t=3600`, retry: "3600"},
		{name: "the strictest in the middle", config: rulesOf(with(t, "a", gcra, per(5, second, 0)), with(t, "b", gcra, per(1, 90*second, 2)), with(t, "c", window, per(50, time.Hour, 0))),
			waits: []time.Duration{0, 0}, status: 200, limit: "2", remaining: "0", reset: 180 * second,
			policies: `"a";q=5;w=1, "b";q=2;w=180, "c";q=50;w=3600`, items: `"a";r=3;t=1, "b";r=0;t=90, "c";r=48;t=3600`},
		{name: "one of several refuses", config: rulesOf(with(t, "a", gcra, per(1, minute, 0)), with(t, "b", gcra, per(1, second, 0)), with(t, "c", window, per(50, time.Hour, 0))),
			waits: []time.Duration{0, 1500 * time.Millisecond}, status: 429, limit: "1", remaining: "0", reset: 58500 * time.Millisecond,
			policies: `"a";q=1;w=60, "b";q=1;w=1, "c";q=50;w=3600`, items: `"a";r=0;t=59, "b";r=1, "c";r=49;t=3599`, retry: "59"},
		{name: "a rule left out", config: rulesOf(with(t, "a", gcra, per(1, time.Hour, 0), unheld), with(t, "b", gcra, half)), waits: []time.Duration{0}, status: 200,
			limit: "5", remaining: "4", reset: 6 * second, policies: `"b";q=5;w=30`, items: `"b";r=4;t=6`},
		{name: "all rules left out", config: rulesOf(with(t, "a", gcra, half, unheld)), waits: []time.Duration{0}, status: 200},
		{name: "a rule on trial", config: rulesOf(with(t, "a", gcra, per(1, time.Hour, 0), shadow), with(t, "b", gcra, half)), waits: []time.Duration{0, 0}, status: 200,
			limit: "5", remaining: "3", reset: 12 * second, policies: `"b";q=5;w=30`, items: `"b";r=3;t=6`},
		{name: "all on trial", config: rulesOf(with(t, "a", gcra, per(1, time.Hour, 0), shadow)), waits: []time.Duration{0, 0}, status: 200},
		{name: "no key", config: rulesOf(with(t, "a", gcra, half), with(t, "b", gcra, half, keyless)), waits: []time.Duration{0}, status: 400,
			limit: "5", remaining: "4", reset: 6 * second, policies: `"a";q=5;w=30`, items: `"a";r=4;t=6`},
		{name: "no key at all", config: rulesOf(with(t, "a", gcra, half, keyless)), waits: []time.Duration{0}, status: 400},
		{name: "no key, and refused", config: rulesOf(with(t, "a", window, per(1, minute, 0)), with(t, "b", gcra, half, keyless)), waits: []time.Duration{0, second}, status: 429,
			limit: "1", remaining: "0", reset: 59 * second, policies: `"a";q=1;w=60`, items: `"a";r=0;t=59`, retry: "59"},
		{name: "the store fails", config: func(t *testing.T) middleware.Config {
			return middleware.Config{Store: failing{}, Rules: []middleware.Rule{with(t, "a", gcra, half)}}
		}, waits: []time.Duration{0}, status: 503, retry: "1"},
		{name: "the store decides nothing", config: func(t *testing.T) middleware.Config {
			return middleware.Config{Store: answering{}, Rules: []middleware.Rule{with(t, "a", gcra, half)}}
		}, waits: []time.Duration{0}, status: 200},
		{name: "blocked", config: func(t *testing.T) middleware.Config {
			return middleware.Config{Block: everyone, Rules: []middleware.Rule{with(t, "a", gcra, half)}}
		}, waits: []time.Duration{0}, status: 403},
		{name: "held", config: rulesOf(with(t, "q", algorithms.LeakyBucket{}, per(1, second, 4), byCost, paces)), waits: []time.Duration{0, second / 4}, last: ofSize(2), status: 200,
			limit: "4", remaining: "1", reset: 2750 * time.Millisecond, held: 750 * time.Millisecond, policies: `"q";q=4;w=4`, items: `"q";r=1;t=1`},
		{name: "held longer than a window lasts", config: rulesOf(with(t, "q", algorithms.LeakyBucket{}, per(1, 9*second, 4), paces), with(t, "w", window, per(2, 5*second, 0))),
			waits: []time.Duration{0, 0}, status: 200, limit: "2", remaining: "0", reset: 5 * second, held: 9 * second,
			policies: `"q";q=4;w=36, "w";q=2;w=5`, items: `"q";r=2;t=1, "w";r=0;t=1`},
		{name: "by plan", config: func(t *testing.T) middleware.Config {
			free, paid := policy(t, "free", half), policy(t, "paid", per(100, minute, 0))
			return middleware.Config{Rules: []middleware.Rule{{Key: keyfunc.Const("k"), Policies: []*algorithms.Policy{free, paid}, PolicyOf: func(r *http.Request) *algorithms.Policy {
				if r.ContentLength > 0 {
					return paid
				}
				return free
			}}}}
		}, waits: []time.Duration{0, 0}, last: ofSize(1), status: 200,
			limit: "100", remaining: "99", reset: 600 * time.Millisecond, policies: `"paid";q=100;w=60`, items: `"paid";r=99;t=1`},
	}
}

func everyone(*http.Request) (bool, error) { return true, nil }

// oddPart is what of a second has passed when a scene begins.
const oddPart = 321987 * time.Microsecond

// play serves the requests of s in a bubble, and gives the answer to the last and
// the time at which that came in.
func (s scene) play(t *testing.T, hs middleware.Headers) (w *httptest.ResponseRecorder, at time.Time) {
	t.Helper()
	c := s.config(t)
	if c.Store == nil {
		c.Store = memstore.New(memstore.Config{})
	}
	c.Headers, c.Logger = hs, slog.New(slog.DiscardHandler)
	h := newMiddleware(t, c).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	time.Sleep(oddPart)
	for i, wait := range s.waits {
		time.Sleep(wait)
		at = time.Now()
		w = serve(h, func(r *http.Request) {
			if i == len(s.waits)-1 && s.last != nil {
				s.last(r)
			}
		})
		if held := time.Since(at); i == len(s.waits)-1 && held != s.held {
			t.Errorf("held for %v, want %v", held, s.held)
		}
	}
	return w, at
}

// dialects are Headers, and the names by which they say what; "" is not said.
var dialects = []struct {
	name   string
	config middleware.Headers
	names  []string // limit, remaining, reset
	items  bool
	expose string // on an answer with numbers
}{
	{"default", middleware.Headers{}, usual, false, ""},
	{"by name", middleware.Headers{Dialect: middleware.XRateLimit}, usual, false, ""},
	{"prefix", middleware.Headers{Prefix: "x-rate-limit-"}, []string{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"}, false, ""},
	{"own names", middleware.Headers{Limit: "X-Most", Remaining: "x-LEFT", Reset: "X-Again-At", Expose: true}, []string{"X-Most", "X-Left", "X-Again-At"}, false, "X-Most, x-LEFT, X-Again-At, Retry-After"},
	{"a prefix and a name", middleware.Headers{Prefix: "Quota-", Reset: "X-Wait"}, []string{"Quota-Limit", "Quota-Remaining", "X-Wait"}, false, ""},
	{"Unix seconds", middleware.Headers{ResetAs: middleware.UnixSeconds}, usual, false, ""},
	{"RFC 3339", middleware.Headers{ResetAs: middleware.RFC3339, Expose: true}, usual, false, "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After"},
	{"draft 11", middleware.Headers{Dialect: middleware.Draft11, Expose: true, Prefix: "No-", ResetAs: middleware.RFC3339}, nil, true, "RateLimit, RateLimit-Policy, Retry-After"},
	{"both", middleware.Headers{Dialect: middleware.XRateLimit | middleware.Draft11, Expose: true}, usual, true, "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After"},
	{"jitter", middleware.Headers{RetryJitter: 90 * second}, usual, false, ""},
	{"never", middleware.Headers{When: middleware.Never}, nil, false, ""},
	{"never of both", middleware.Headers{When: middleware.Never, Dialect: middleware.XRateLimit | middleware.Draft11, Expose: true}, nil, false, "Retry-After"},
	{"on refusal", middleware.Headers{When: middleware.OnRefusal, Expose: true}, usual, false, "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After"},
	{"draft 11 on refusal", middleware.Headers{When: middleware.OnRefusal, Dialect: middleware.Draft11}, nil, true, ""},
	{"both on refusal", middleware.Headers{When: middleware.OnRefusal, Dialect: middleware.XRateLimit | middleware.Draft11}, usual, true, ""},
}

var usual = []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}

// Each scene is told in each dialect, and an answer has no header besides.
func TestHeaders(t *testing.T) {
	for _, s := range scenes(t) {
		for _, d := range dialects {
			t.Run(s.name+"/"+d.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, at := s.play(t, d.config)
					want := map[string]string{}
					if s.status != 200 {
						want["Cache-Control"], want["Content-Type"], want["X-Content-Type-Options"] = "no-store", "text/plain; charset=utf-8", "nosniff"
					}
					told := d.config.When == middleware.Always || d.config.When == middleware.OnRefusal && s.status == 429
					if told && s.limit != "" && d.names != nil {
						want[d.names[0]], want[d.names[1]], want[d.names[2]] = s.limit, s.remaining, resetText(d.config.ResetAs, at, s)
					}
					if told && s.items != "" && d.items {
						want["Ratelimit-Policy"], want["Ratelimit"] = s.policies, s.items
					}
					if d.expose != "" && (told || s.status != 200) {
						want["Access-Control-Expose-Headers"] = d.expose
					}
					if s.retry != "" {
						want["Retry-After"] = jittered(t, w, s, d.config.RetryJitter)
					}
					got := map[string]string{}
					for name, values := range w.Header() {
						got[name] = strings.Join(values, " | ")
					}
					if w.Code != s.status || !maps.Equal(got, want) {
						t.Errorf("%d, want %d", w.Code, s.status)
						for _, name := range slices.Sorted(maps.Keys(want)) {
							if got[name] != want[name] {
								t.Errorf("%s: %q, want %q", name, got[name], want[name])
							}
						}
						t.Errorf("all: %q", got)
					}
				})
			})
		}
	}
}

// resetText is the reset of s as a header has it, for a request that came in at a
// time.
func resetText(as middleware.ResetFormat, at time.Time, s scene) string {
	up := func(d time.Duration) time.Duration { return (d + second - 1).Truncate(second) }
	switch as {
	case middleware.UnixSeconds:
		return strconv.FormatInt(at.Truncate(second).Unix()+int64(up(at.Sub(at.Truncate(second))+s.reset)/second), 10)
	case middleware.RFC3339:
		return at.Truncate(second).Add(up(at.Sub(at.Truncate(second)) + s.reset)).UTC().Format("2006-01-02T15:04:05Z")
	}
	return fmt.Sprint(int64(up(max(0, s.reset-s.held)) / second))
}

// jittered is the Retry-After of w where it is right, and else what it should be.
func jittered(t *testing.T, w *httptest.ResponseRecorder, s scene, most time.Duration) string {
	got := w.Header().Get("Retry-After")
	least, err := strconv.Atoi(s.retry)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(got); most > 0 && s.status == 429 && err == nil && least <= n && n <= least+int(most/second) {
		return got
	}
	return s.retry
}

var _ store.Store = failing{}
