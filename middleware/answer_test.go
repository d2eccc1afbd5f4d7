package middleware_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// What may not pass is answered with a problem document or a line, which no cache
// keeps and which says nothing of the inside.
func TestAnswers(t *testing.T) {
	hour := func(name string) middleware.Rule { return with(t, name, algorithms.GCRA{}, per(1, time.Hour, 0)) }
	tooLong := func(*http.Request) (string, error) { return "", fmt.Errorf("body: %w", keyfunc.ErrBodyTooLong) }
	ban, err := algorithms.Ban{Strikes: 1, Within: time.Minute, For: 2 * time.Hour}.Policy("ban")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config middleware.Config // of which the second request is the one
		json   map[string]any
		text   string
	}{
		"refused": {middleware.Config{Rules: []middleware.Rule{hour("a.b-c_1"), with(t, "wide", algorithms.GCRA{}, per(9, time.Hour, 0))}}, map[string]any{
			"type": problemTypes + "quota-exceeded", "title": "Too Many Requests", "status": 429.0,
			"detail": "Try again in 3600 seconds.", "violated-policies": []any{"a.b-c_1"},
		}, "Too Many Requests. Try again in 3600 seconds.\n"},
		"refused twice": {middleware.Config{Rules: []middleware.Rule{with(t, "s", algorithms.GCRA{}, per(1, second, 0)), hour("h"), with(t, "try", algorithms.GCRA{}, per(1, time.Hour, 0), shadow)}}, map[string]any{
			"type": problemTypes + "quota-exceeded", "title": "Too Many Requests", "status": 429.0,
			"detail": "Try again in 3600 seconds.", "violated-policies": []any{"s", "h"},
		}, "Too Many Requests. Try again in 3600 seconds.\n"},
		"a second": {middleware.Config{Rules: []middleware.Rule{with(t, "s", algorithms.GCRA{}, per(1, second, 0))}}, map[string]any{
			"type": problemTypes + "quota-exceeded", "title": "Too Many Requests", "status": 429.0,
			"detail": "Try again in 1 second.", "violated-policies": []any{"s"},
		}, "Too Many Requests. Try again in 1 second.\n"},
		"never": {middleware.Config{Rules: []middleware.Rule{with(t, "n", algorithms.GCRA{}, per(1, second, 0), costing(2))}}, map[string]any{
			"type": problemTypes + "quota-exceeded", "title": "Too Many Requests", "status": 429.0,
			"detail": "This request asks for more than the limit ever allows.", "violated-policies": []any{"n"},
		}, "Too Many Requests. This request asks for more than the limit ever allows.\n"},
		"banned": {middleware.Config{Rules: []middleware.Rule{hour("h")}, Ban: ban}, map[string]any{
			"type": problemTypes + "abnormal-usage-detected", "title": "Too Many Requests", "status": 429.0,
			"detail": "Try again in 7200 seconds.", "violated-policies": []any{"h", "ban"},
		}, "Too Many Requests. Try again in 7200 seconds.\n"},
		"failed": {middleware.Config{Store: failing{}, Rules: []middleware.Rule{hour("h")}}, map[string]any{
			"type": problemTypes + "temporary-reduced-capacity", "title": "Service Unavailable", "status": 503.0, "detail": "Try again in 1 second.",
		}, "Service Unavailable. Try again in 1 second.\n"},
		"blocked": {middleware.Config{Block: everyone, Rules: []middleware.Rule{hour("h")}}, map[string]any{
			"title": "Forbidden", "status": 403.0,
		}, "Forbidden.\n"},
		"too long": {middleware.Config{Rules: []middleware.Rule{{Policy: hour("h").Policy, Key: tooLong}}}, map[string]any{
			"title": "Request Entity Too Large", "status": 413.0,
		}, "Request Entity Too Large.\n"},
		"no key": {middleware.Config{Rules: []middleware.Rule{with(t, "h", algorithms.GCRA{}, per(50, second, 0)), with(t, "n", algorithms.GCRA{}, per(5, second, 0), keyless)}}, map[string]any{
			"title": "Bad Request", "status": 400.0, "detail": "The request lacks something it must have.",
		}, "Bad Request. The request lacks something it must have.\n"},
	} {
		if c.config.Store == nil {
			c.config.Store = memstore.New(memstore.Config{Clock: storetest.NewClock().Now})
		}
		c.config.Logger = slog.New(slog.DiscardHandler)
		h := outer(newMiddleware(t, c.config).Handler(ok), map[string]string{
			"Cache-Control": "public, max-age=300", "Cdn-Cache-Control": "max-age=600", "Surrogate-Control": "max-age=900", "Etag": `"x"`,
			"Last-Modified": "x", "Content-Length": "7", "Content-Type": "image/png", "Access-Control-Allow-Origin": "https://app.example",
			"Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "X-Request-Id", "Vary": "Origin", "X-Request-Id": "1",
		})
		for _, kind := range []string{"application/problem+json", "text/plain; charset=utf-8"} {
			serve(h, accept(kind))
			for _, method := range []string{"GET", "POST", "HEAD"} {
				w := serve(h, accept(kind), func(r *http.Request) { r.Method = method })
				wantHeaders(t, w, map[string]string{
					"Cache-Control": "no-store", "Cdn-Cache-Control": "", "Surrogate-Control": "", "Etag": "", "Last-Modified": "", "Content-Length": "",
					"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "https://app.example",
					"Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "X-Request-Id", "Vary": "Origin", "X-Request-Id": "1",
				})
				var got map[string]any
				switch body := w.Body.String(); {
				case w.Code != int(c.json["status"].(float64)):
					t.Errorf("%s: %d", name, w.Code)
				case method == "HEAD":
					if body != "" {
						t.Errorf("%s: %q for HEAD", name, body)
					}
				case strings.HasPrefix(kind, "text"):
					if body != c.text {
						t.Errorf("%s: %q, want %q", name, body, c.text)
					}
				case json.Unmarshal(w.Body.Bytes(), &got) != nil || !reflect.DeepEqual(got, c.json) || !strings.HasSuffix(body, "}\n"):
					t.Errorf("%s: %q, want %v", name, body, c.json)
				}
			}
		}
	}
}

// A layer outside that compresses says so before the limiter is called.
func TestAnswerIsCompressed(t *testing.T) {
	limited := limiter(t, storetest.NewClock(), algorithms.PerHour(1)).Handler(ok)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		limited.ServeHTTP(compressed{w, z}, r)
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	for _, want := range []string{"ok", "Too Many Requests. Try again in 3600 seconds.\n"} {
		resp, err := s.Client().Get(s.URL) // the client decompresses
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != want {
			t.Errorf("%q, %v; want %q", body, err, want)
		}
		_ = resp.Body.Close()
	}
}

type compressed struct {
	http.ResponseWriter
	z *gzip.Writer
}

func (c compressed) Write(b []byte) (int, error) { return c.z.Write(b) }

// A Denied can change the headers, and DefaultDenied says what they say.
func TestDeniedChangesHeaders(t *testing.T) {
	for _, c := range []struct {
		change       func(http.Header)
		retry, cache string
		says         string
	}{
		{func(h http.Header) {}, "60", "no-store", "60 seconds"},
		{func(h http.Header) { h.Set("Retry-After", "120") }, "120", "no-store", "120 seconds"},
		{func(h http.Header) { h.Set("Retry-After", "1") }, "1", "no-store", "1 second"},
		{func(h http.Header) { h.Del("Retry-After") }, "", "no-store", "60 seconds"},
		{func(h http.Header) { h.Set("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT") }, "Fri, 31 Dec 1999 23:59:59 GMT", "no-store", "60 seconds"},
		{func(h http.Header) { h.Set("Retry-After", "-5") }, "-5", "no-store", "60 seconds"},
		{func(h http.Header) { h.Set("Retry-After", `1"}`) }, `1"}`, "no-store", "60 seconds"},
		{func(h http.Header) { h.Set("Cache-Control", "private, no-store") }, "60", "private, no-store", "60 seconds"},
		{func(h http.Header) { h.Set("Cache-Control", "private") }, "60", "no-store", "60 seconds"},
		{func(h http.Header) { h.Del("Cache-Control") }, "60", "no-store", "60 seconds"},
	} {
		m := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{Clock: storetest.NewClock().Now}),
			Rules: []middleware.Rule{with(t, "p", algorithms.GCRA{}, algorithms.PerMinute(1))},
			Denied: func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
				c.change(w.Header())
				middleware.DefaultDenied(w, r, d)
			},
		})
		serve(m.Handler(ok))
		w := serve(m.Handler(ok))
		wantHeaders(t, w, map[string]string{"Retry-After": c.retry, "Cache-Control": c.cache})
		if w.Body.String() != "Too Many Requests. Try again in "+c.says+".\n" {
			t.Errorf("Retry-After %q: %q", c.retry, w.Body)
		}
	}
}

// DefaultDenied takes any Decision that somebody has made up, for a test say.
func TestDefaultDeniedTakesAnything(t *testing.T) {
	limited := []algorithms.Result{{Limited: true, RetryAfter: second}}
	charges := []store.Charge{{Policy: policy(t, "p", algorithms.PerMinute(1))}}
	for _, c := range []struct {
		d    middleware.Decision
		want string
	}{
		{middleware.Decision{Results: limited}, "later"},
		{middleware.Decision{Charges: charges}, "later"},
		{middleware.Decision{Charges: make([]store.Charge, 1), Results: limited}, "later"},
		{middleware.Decision{Charges: charges, Results: limited, Refused: 5}, "later"},
		{middleware.Decision{Charges: charges, Results: limited}, "in 1 second"},
	} {
		w := httptest.NewRecorder()
		middleware.DefaultDenied(w, httptest.NewRequest("GET", "/", nil), c.d)
		wantHeaders(t, w, map[string]string{"Cache-Control": "no-store"})
		if w.Body.String() != "Too Many Requests. Try again "+c.want+".\n" {
			t.Errorf("%+v: %q", c.d, w.Body)
		}
		w = httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		accept("application/json")(r)
		middleware.DefaultDenied(w, r, c.d)
		var body struct{ Detail string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Detail != "Try again "+c.want+"." {
			t.Errorf("%+v: %v in %q", c.d, err, w.Body)
		}
	}
}

// A Failed of one's own finds the headers set, and may change them.
func TestFailed(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: failing{}, Logger: slog.New(slog.DiscardHandler),
		Rules:   []middleware.Rule{with(t, "p", algorithms.GCRA{}, algorithms.PerMinute(1))},
		Headers: middleware.Headers{When: middleware.OnRefusal, Expose: true},
		Failed: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, errAway) {
				t.Errorf("%v", err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	})
	w := serve(outer(m.Handler(ok), map[string]string{"Cache-Control": "public"}))
	wantHeaders(t, w, map[string]string{"Cache-Control": "no-store", "Access-Control-Expose-Headers": "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After"})
	if w.Code != 502 {
		t.Errorf("%d", w.Code)
	}
}

// What an outer layer exposes is exposed still, and its slice is its own.
func TestExposeBesideOthers(t *testing.T) {
	shared := append(make([]string, 0, 4), "X-Request-Id", "ETag")
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}), Headers: middleware.Headers{Expose: true, Dialect: middleware.XRateLimit | middleware.Draft11},
		Rules: []middleware.Rule{with(t, "p", algorithms.GCRA{}, algorithms.PerMinute(1))},
	})
	h := m.Handler(ok)
	for range 2 {
		w := httptest.NewRecorder()
		for _, name := range []string{"Access-Control-Expose-Headers", "Ratelimit", "Ratelimit-Policy"} {
			w.Header()[name] = shared
		}
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		ours := "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After"
		if got := w.Header()["Access-Control-Expose-Headers"]; !slices.Equal(got, []string{"X-Request-Id", "ETag", ours}) {
			t.Errorf("%q", got)
		}
		if len(w.Header()["Ratelimit"]) != 3 || shared[:3][2] != "" {
			t.Errorf("%q %q", w.Header()["Ratelimit"], shared[:4])
		}
	}
}

// The jitter only lengthens the wait, by no more than it says, and the body says
// what the header says.
func TestRetryJitter(t *testing.T) {
	for _, c := range []struct {
		jitter      time.Duration
		least, most int
	}{{0, 60, 60}, {1, 60, 61}, {second, 60, 61}, {3 * second / 2, 60, 62}, {time.Minute, 60, 120}, {time.Hour, 60, 3660}} {
		clock := storetest.NewClock()
		m := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{Clock: clock.Now}), Headers: middleware.Headers{RetryJitter: c.jitter},
			Rules: []middleware.Rule{with(t, "p", algorithms.GCRA{}, algorithms.PerMinute(1), byCost)},
		})
		h := m.Handler(ok)
		serve(h)
		seen := map[int]bool{}
		for range 500 {
			w := serve(h)
			n, err := strconv.Atoi(w.Header().Get("Retry-After"))
			if err != nil || n < c.least || n > c.most || w.Body.String() != fmt.Sprintf("Too Many Requests. Try again in %d seconds.\n", n) {
				t.Errorf("jitter %v: %v %q", c.jitter, w.Header(), w.Body)
			}
			seen[n] = true
		}
		if len(seen) < min(c.most-c.least, 40) {
			t.Errorf("jitter %v: %d different waits", c.jitter, len(seen))
		}
		wantHeaders(t, serve(h, ofSize(2)), map[string]string{"Retry-After": ""})
	}
}
