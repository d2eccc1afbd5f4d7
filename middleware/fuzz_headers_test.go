package middleware_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// wantFields wants names that are tokens, values of visible characters and single
// blanks between them (RFC 9110 §5.5, without what is only there for old times), and
// the same header again from who reads what is sent.
func wantFields(t *testing.T, h http.Header) {
	t.Helper()
	for name, values := range h {
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") != "" || name != http.CanonicalHeaderKey(name) {
			t.Errorf("the name %q", name)
		}
		for _, v := range values {
			bad := strings.IndexFunc(v, func(c rune) bool { return c < ' ' || c > '~' })
			if v == "" || bad >= 0 || v != strings.TrimSpace(v) {
				t.Errorf("%s: %q", name, v)
			}
		}
	}
	var wire bytes.Buffer
	if err := h.Write(&wire); err != nil {
		t.Fatal(err)
	}
	wire.WriteString("\r\n")
	read, err := textproto.NewReader(bufio.NewReader(&wire)).ReadMIMEHeader()
	if err != nil || len(h) > 0 && !reflect.DeepEqual(http.Header(read), h) {
		t.Errorf("%v is read as %v, %v", h, read, err)
	}
}

// decimal is s, which must be digits and not begin with a 0 of several.
func decimal(t *testing.T, what, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != s {
		t.Errorf("%s: %q is not a number from 0 on", what, s)
	}
	return n
}

// wantTold wants the three headers of XRateLimit as they may be.
func wantTold(t *testing.T, h http.Header, names [3]string, as middleware.ResetFormat) {
	t.Helper()
	limit, remaining := decimal(t, names[0], h.Get(names[0])), decimal(t, names[1], h.Get(names[1]))
	if limit < 1 || remaining > limit {
		t.Errorf("%d remain of %d", remaining, limit)
	}
	reset := h.Get(names[2])
	if as == middleware.RFC3339 {
		at, err := time.Parse("2006-01-02T15:04:05Z", reset)
		if err != nil || at.Before(time.Now().Add(-time.Second)) {
			t.Errorf("%s: %q, %v; it is %v", names[2], reset, err, time.Now())
		}
	} else if n := decimal(t, names[2], reset); as == middleware.UnixSeconds && n < time.Now().Unix() {
		t.Errorf("%s: %s, and it is %d", names[2], reset, time.Now().Unix())
	}
}

// wantItems wants those of Draft11 as they may be, whatever the store answers.
func wantItems(t *testing.T, h http.Header) {
	t.Helper()
	policies, limits := sfItems(t, h["Ratelimit-Policy"]), sfItems(t, h["Ratelimit"])
	if len(policies) != len(limits) {
		t.Errorf("%d policies, %d limits", len(policies), len(limits))
		return
	}
	for i := range limits {
		if name, ok := limits[i].Value.(string); !ok || policies[i].Value != name {
			t.Errorf("item %d is %v, and its policy %v", i, limits[i].Value, policies[i].Value)
		}
		for _, p := range []struct {
			name  string
			least int64
		}{{"q", 0}, {"w", 1}, {"r", 0}, {"t", 1}} {
			from, required := limits[i], p.name == "r" || p.name == "q"
			if p.name == "q" || p.name == "w" {
				from = policies[i]
			}
			if value, ok := from.Params.Get(p.name); ok || required {
				integer(t, value, p.least)
			}
		}
	}
}

// FuzzHeaders has a store answer anything for a policy of any name and limit, at
// any time. Whatever it says, an answer is one that a client can read.
//
// choice says by its bits which algorithm, headers and body there are. jitter is in
// µs.
func FuzzHeaders(f *testing.F) {
	minute, never := int64(time.Minute), int64(algorithms.Never)
	for _, r := range [][5]int64{ // limited, and the other four
		{0, 5, 4, 0, minute}, {1, 5, 0, minute, minute}, {1, 5, 5, never, 0}, {0, 0, 0, 0, 0}, {1, 0, 0, 0, 0}, {0, 5, 0, minute, minute},
		{1, 1, 0, 1, 1}, {1, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}, {1, math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64},
		{0, 5, -1, -2, -1}, {0, 5, 6, 0, 0}, {0, 1 << 53, 1 << 53, 1 << 60, 1 << 60}, {1, 5, 0, 1<<53*1000 + 1, 1<<53*1000 + 1},
	} {
		for choice := range uint32(6) {
			f.Add("ip", int64(5), minute, int64(0), r[0] == 1, r[1], r[2], r[3], r[4], choice*0x2f4d, int64(choice)*1_000_000, int64(choice)*int64(time.Hour), "k", "application/json")
		}
	}
	f.Add(`a"b`, int64(1), int64(1000), int64(1), true, int64(1), int64(0), int64(1), int64(1), ^uint32(0), int64(3600_000_000), int64(math.MaxInt64), "\r\n\x00\xff", "*/*")
	f.Add("a\r\nSet-Cookie: x", int64(1<<53), int64(math.MaxInt64), int64(1<<53), true, int64(1), int64(0), int64(1), int64(1), uint32(0), int64(-1), int64(-1), "", "")
	f.Fuzz(func(t *testing.T, name string, count, period, burst int64, limited bool, limit, remaining, retry, reset int64, choice uint32, jitter, at int64, key, accepts string) {
		bits := func(n uint32) uint32 { b := choice % n; choice /= n; return b }
		as := []algorithms.Algorithm{
			algorithms.GCRA{}, algorithms.FixedWindow{}, algorithms.FixedWindow{Aligned: true}, algorithms.SlidingCounter{},
			algorithms.SlidingLog{}, algorithms.LeakyBucket{Stepped: true}, algorithms.TokenBucket{},
		}
		p, err := algorithms.NewPolicy(name, as[bits(uint32(len(as)))], algorithms.Limit{Count: count, Period: time.Duration(period), Burst: burst})
		if err != nil {
			if !isFieldError(err) {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		answer := algorithms.Result{Limited: limited, Limit: limit, Remaining: remaining, RetryAfter: time.Duration(retry), ResetAfter: time.Duration(reset)}
		other := algorithms.Result{Limited: bits(2) == 1, Limit: 10, Remaining: 1, RetryAfter: 90 * time.Second, ResetAfter: time.Hour}
		var denied *middleware.Decision
		c := middleware.Config{
			Store: answering{answer, other, other}, Logger: slog.New(slog.DiscardHandler),
			Rules: []middleware.Rule{{Policy: p, Key: keyfunc.Const(key + "k")}},
			Headers: middleware.Headers{
				Dialect: middleware.Dialect(bits(4)), When: middleware.When(bits(3)), ResetAs: middleware.ResetFormat(bits(3)), Expose: bits(2) == 1,
				RetryJitter: time.Duration(jitter) * time.Microsecond,
			},
			Denied: func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
				denied = &d
				middleware.DefaultDenied(w, r, d)
			},
		}
		if bits(2) == 1 {
			c.Headers.PartitionSecret = bytes.Repeat([]byte("s"), 16)
		}
		if bits(2) == 1 && name != "other" {
			c.Rules = append(c.Rules, middleware.Rule{Policy: policy(t, "other", algorithms.PerMinute(10)), Key: keyfunc.Const("k")})
		}
		if bits(2) == 1 && name != "ban" {
			c.Ban = threeStrikes(t)
		}
		m, err := middleware.New(c)
		if err != nil {
			if !isFieldError(err) || jitter >= 0 && jitter <= 3600_000_000 {
				t.Errorf("%v", err)
			}
			return
		}
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Duration(at) % (250 * 365 * 24 * time.Hour))
			w := serve(m.Handler(ok), accept(accepts))
			wantAnswer(t, w, denied, c.Headers)
		})
	})
}

// wantAnswer wants a pass, or a refusal that denied is what was decided.
func wantAnswer(t *testing.T, w *httptest.ResponseRecorder, denied *middleware.Decision, c middleware.Headers) {
	t.Helper()
	h := w.Header()
	body := h.Get("Content-Type")
	if w.Code == 200 {
		h.Del("Content-Type") // the recorder's
	}
	wantFields(t, h)
	wantItems(t, h)
	if _, told := h["X-Ratelimit-Limit"]; told {
		wantTold(t, h, [3]string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}, c.ResetAs)
	}
	after, has := h["Retry-After"]
	if (w.Code == 429) != (denied != nil) || w.Code != 429 && w.Code != 200 {
		t.Errorf("%d, %v", w.Code, denied)
	}
	if denied == nil {
		if has {
			t.Errorf("a pass has Retry-After %q", after)
		}
		return
	}
	refusal := denied.Results[denied.Refused]
	if !refusal.Limited || has != (refusal.RetryAfter != algorithms.Never) {
		t.Errorf("Retry-After is %q, of %+v", after, refusal)
	}
	if has {
		wait := time.Duration(decimal(t, "Retry-After", after[0]))
		if wait < 1 || wait < refusal.RetryAfter/time.Second || (wait-1)*time.Second >= max(1, refusal.RetryAfter+c.RetryJitter) {
			t.Errorf("Retry-After is %q, of %+v, jitter %v", after, refusal, c.RetryJitter)
		}
	}
	if h.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control: %q", h["Cache-Control"])
	}
	var doc struct {
		Type, Title, Detail string
		Status              int
		Violated            []string `json:"violated-policies"`
	}
	switch body {
	case "application/problem+json":
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || doc.Status != 429 || doc.Type == "" || doc.Detail == "" || len(doc.Violated) == 0 {
			t.Errorf("%q: %+v, %v", w.Body, doc, err)
		}
	case "text/plain; charset=utf-8":
		if line, ok := strings.CutSuffix(w.Body.String(), "\n"); !ok || line == "" || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q", w.Body)
		}
	default:
		t.Errorf("Content-Type: %q", body)
	}
}

// FuzzHeaderNames gives headers any names. Those that New takes come back to
// a client as they are, each its own; the rest is a mistake that says which.
func FuzzHeaderNames(f *testing.F) {
	for _, s := range []string{"", "X-", "x-rate-limit-", "RateLimit-", "Retry-After", "X Y", "X\r\nY", "X:", "\x00", "é", "ſ", "K", "content-", "limit", "X-RateLimit-Limit"} {
		f.Add(s, "", "", "")
		f.Add("", s, "X-Left", "")
		f.Add("Q-", "", s, "x-"+s)
		f.Add("", s, s, s)
	}
	f.Fuzz(func(t *testing.T, prefix, limit, remaining, reset string) {
		hs := middleware.Headers{Prefix: prefix, Limit: limit, Remaining: remaining, Reset: reset, Expose: true}
		m, err := middleware.New(middleware.Config{
			Store: memstore.New(memstore.Config{}), Headers: hs, Logger: slog.New(slog.DiscardHandler),
			Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(5)), Key: keyfunc.Const("k")}},
		})
		if err != nil {
			for _, leaf := range leaves(err) {
				if e := (*middleware.FieldError)(nil); !errors.As(leaf, &e) || !strings.HasPrefix(e.Field, "Headers.") || e.Reason == "" {
					t.Errorf("%+q: %v", [...]string{hs.Prefix, limit, remaining, reset}, leaf)
				}
			}
			return
		}
		w := serve(m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		h := w.Header()
		wantFields(t, h)
		if len(h) != 4 || len(strings.Split(h.Get("Access-Control-Expose-Headers"), ", ")) != 4 {
			t.Errorf("%q: %v", [...]string{hs.Prefix, limit, remaining, reset}, h)
		}
		if prefix == "" {
			prefix = "X-RateLimit-"
		}
		names := [3]string{limit, remaining, reset}
		for i, word := range []string{"Limit", "Remaining", "Reset"} {
			if names[i] == "" {
				names[i] = prefix + word
			}
		}
		if h.Get(names[0]) != "5" || h.Get(names[1]) != "4" || h.Get(names[2]) != "720" {
			t.Errorf("%v, of the names %q", h, names)
		}
	})
}
