package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func policy(t testing.TB, name string, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newMiddleware(t testing.TB, c middleware.Config) *middleware.Middleware {
	t.Helper()
	m, err := middleware.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// limiter is a middleware of one rule for each limit, all on one key.
func limiter(t testing.TB, clock *storetest.Clock, limits ...algorithms.Limit) *middleware.Middleware {
	t.Helper()
	c := middleware.Config{Store: memstore.New(memstore.Config{Clock: clock.Now})}
	for i, l := range limits {
		c.Rules = append(c.Rules, middleware.Rule{Policy: policy(t, "p"+string(rune('0'+i)), l), Key: keyfunc.Const("k")})
	}
	return newMiddleware(t, c)
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })

func serve(h http.Handler, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func accept(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", value) }
}

// failing is a store that is away.
type failing struct{ store.Store }

var errAway = errors.New("dial tcp 192.0.2.1:6379: secret detail")

func (failing) Validate(...*algorithms.Policy) error { return nil }

func (failing) Take(context.Context, []store.Charge, []algorithms.Result) error { return errAway }

// The headers and the body speak of the strictest rule, and only of rules that
// are enforced.
func TestStrictestRule(t *testing.T) {
	clock := storetest.NewClock()
	h := limiter(t, clock, algorithms.PerMinute(5), algorithms.PerHour(1), algorithms.PerDay(100)).Handler(ok)
	if w := serve(h); w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "1" || w.Header().Get("X-RateLimit-Remaining") != "0" || w.Header().Get("X-RateLimit-Reset") != "3600" {
		t.Errorf("the first: %d %v", w.Code, w.Header())
	}
	for range 10 {
		w := serve(h, accept("application/json"))
		if w.Code != 429 || w.Header().Get("X-RateLimit-Limit") != "1" || w.Header().Get("Retry-After") != "3600" {
			t.Errorf("the second: %d %v", w.Code, w.Header())
		}
	}
	// Refusals charged nothing: four of five are left for the minute.
	clock.Advance(time.Hour)
	if w := serve(h); w.Code != 200 {
		t.Errorf("an hour later: %d", w.Code)
	}
}

func TestRefusalBody(t *testing.T) {
	clock := storetest.NewClock()
	m := limiter(t, clock, algorithms.PerMinute(1), algorithms.PerHour(1), algorithms.PerHour(5))
	h := m.Handler(ok)
	serve(h)
	for _, value := range []string{"application/json", "application/problem+json", "text/html, application/vnd.x+json;q=0.5", "application/*", "Application/JSON; charset=utf-8"} {
		w := serve(h, accept(value))
		var body struct {
			Type, Title, Detail string
			Status              int
			Violated            []string `json:"violated-policies"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("Accept %q: %v in %q", value, err, w.Body)
		}
		if w.Header().Get("Content-Type") != "application/problem+json" || body.Status != 429 || body.Title != "Too Many Requests" ||
			body.Type != "https://iana.org/assignments/http-problem-types#quota-exceeded" || body.Detail != "Try again in 3600 seconds." ||
			!slices.Equal(body.Violated, []string{"p0", "p1"}) {
			t.Errorf("Accept %q: %v %q", value, w.Header(), w.Body)
		}
	}
	for _, value := range []string{"", "*/*", "text/html", "application/json;q=0", "application/json; q=0.0, text/plain", "text/json"} {
		w := serve(h, accept(value))
		if w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Body.String() != "Too Many Requests. Try again in 3600 seconds.\n" {
			t.Errorf("Accept %q: %v %q", value, w.Header(), w.Body)
		}
	}
	clock.Advance(time.Hour - time.Millisecond)
	if w := serve(h); w.Body.String() != "Too Many Requests. Try again in 1 second.\n" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("a moment before: %v %q", w.Header(), w.Body)
	}
	if w := serve(h, func(r *http.Request) { r.Method = "HEAD" }); w.Code != 429 || w.Body.Len() != 0 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("HEAD: %d %v %q", w.Code, w.Header(), w.Body)
	}
}

// A cost above the capacity is refused without a promise.
func TestNever(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{
			Policy: policy(t, "p", algorithms.PerMinute(5)), Key: keyfunc.Const("k"),
			Cost: func(r *http.Request) int64 { return r.ContentLength },
		}},
	})
	w := serve(m.Handler(ok), func(r *http.Request) { r.ContentLength = 6 })
	if _, there := w.Header()["Retry-After"]; w.Code != 429 || there || w.Header().Get("X-RateLimit-Remaining") != "5" ||
		w.Body.String() != "Too Many Requests. This request asks for more than the limit ever allows.\n" {
		t.Errorf("cost 6 of 5: %d %v %q", w.Code, w.Header(), w.Body)
	}
	// A cost of 0 looks, a negative one is a mistake of the program.
	if w := serve(m.Handler(ok), func(r *http.Request) { r.ContentLength = 0 }); w.Code != 200 || w.Header().Get("X-RateLimit-Remaining") != "5" {
		t.Errorf("cost 0: %d %v", w.Code, w.Header())
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.ContentLength = -1
	if _, err := m.Check(r); !isFieldError(err) {
		t.Errorf("cost -1: %v", err)
	}
}

func isFieldError(err error) bool {
	var mistake *middleware.FieldError
	return errors.As(err, &mistake)
}

func TestShadow(t *testing.T) {
	var seen middleware.Decision
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{
			{Policy: policy(t, "try", algorithms.PerHour(1)), Key: keyfunc.Const("k"), Shadow: true},
			{Policy: policy(t, "real", algorithms.PerHour(3)), Key: keyfunc.Const("k")},
		},
	})
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen, _ = middleware.FromContext(r.Context()) }))
	for i := range 4 {
		w := serve(h)
		if (w.Code == 429) != (i == 3) || w.Header().Get("X-RateLimit-Limit") != "3" {
			t.Errorf("call %d: %d %v", i+1, w.Code, w.Header())
		}
		if i == 3 {
			if strings.Contains(w.Body.String(), "try") {
				t.Errorf("a shadow rule in the body: %q", w.Body)
			}
		} else if seen.Refused != -1 || seen.Results[0].Limited != (i > 0) {
			t.Errorf("call %d: %+v", i+1, seen)
		}
	}
}

// A request without a key is a bad one, and is charged under the other rules;
// a rule that does not apply is left out.
func TestKeys(t *testing.T) {
	clock := storetest.NewClock()
	skipAdmins := func(r *http.Request) (string, error) {
		if r.Header.Get("Admin") != "" {
			return "", keyfunc.ErrSkip
		}
		return "anyone", nil
	}
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{Clock: clock.Now}),
		Rules: []middleware.Rule{
			{Policy: policy(t, "user", algorithms.PerHour(1)), Key: keyfunc.Header("X-User-ID")},
			{Policy: policy(t, "all", algorithms.PerHour(3)), Key: keyfunc.Const("all")},
			{Policy: policy(t, "most", algorithms.PerHour(2)), Key: skipAdmins},
		},
	})
	var last middleware.Decision
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { last, _ = middleware.FromContext(r.Context()) }))
	user := func(id string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("X-User-ID", id) } }
	admin := func(r *http.Request) { r.Header.Set("Admin", "1") }

	if w := serve(h, user("u1"), admin); w.Code != 200 || last.Results[2].Limit != 0 || last.Charges[2].Policy != nil || last.Results[1].Remaining != 2 || last.Charges[1].Key != "all" {
		t.Errorf("an admin: %d %+v", w.Code, last)
	}
	for i, code := range []int{400, 400, 429} {
		w := serve(h)
		if w.Code != code || w.Header().Get("X-RateLimit-Limit") == "" || code == 400 && w.Body.String() != "Bad Request. The request lacks something it must have.\n" {
			t.Errorf("call %d without a user: %d %v %q", i+1, w.Code, w.Header(), w.Body)
		}
	}
	if w := serve(h, user("u2")); w.Code != 429 {
		t.Errorf("the others have used up all: %d", w.Code)
	}
	if _, err := m.Check(httptest.NewRequest("GET", "/", nil)); err != nil {
		t.Errorf("no key and refused: %v", err)
	}
	clock.Advance(time.Hour)
	if _, err := m.Check(httptest.NewRequest("GET", "/", nil)); !errors.Is(err, keyfunc.ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
}

// An empty key is none, and what fails for another reason is no denial and no
// pass. All rules left out is a pass.
func TestKeyErrors(t *testing.T) {
	key := func(k string, err error) keyfunc.Func {
		return func(*http.Request) (string, error) { return k, err }
	}
	for _, c := range []struct {
		key  keyfunc.Func
		code int
	}{
		{key("", nil), 400},
		{key("", keyfunc.ErrSkip), 200},
		{key("k", errAway), 503},
	} {
		m := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{}), Logger: slog.New(slog.DiscardHandler),
			Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: c.key}},
		})
		w := serve(m.Handler(ok))
		if _, there := w.Header()["X-Ratelimit-Limit"]; w.Code != c.code || there {
			t.Errorf("%d %v; want %d", w.Code, w.Header(), c.code)
		}
	}
}

// tooLong is an error of a key function that says more than "no key".
type tooLong struct{ status int }

func (*tooLong) Error() string { return "too long" }
func (*tooLong) Unwrap() error { return keyfunc.ErrNoKey }

// What a key function says of a missing key reaches Failed, from any rule.
func TestFailedSeesKeyErrors(t *testing.T) {
	key := func(*http.Request) (string, error) { return "", &tooLong{413} }
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{
			{Policy: policy(t, "a", algorithms.PerHour(1)), Key: keyfunc.Header("X-None")},
			{Policy: policy(t, "b", algorithms.PerHour(1)), Key: key},
		},
		Failed: func(w http.ResponseWriter, r *http.Request, err error) {
			var long *tooLong
			if errors.As(err, &long) && errors.Is(err, keyfunc.ErrNoKey) {
				w.WriteHeader(long.status)
				return
			}
			middleware.DefaultFailed(w, r, err)
		},
	})
	if w := serve(m.Handler(ok)); w.Code != 413 {
		t.Errorf("%d", w.Code)
	}
}

func TestStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := middleware.Config{
			Store: failing{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("a personal key")}},
		}
		h := newMiddleware(t, c).Handler(ok)
		for range 5 {
			w := serve(h, accept("application/json"))
			if w.Code != 503 || w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-RateLimit-Limit") != "" ||
				!strings.Contains(w.Body.String(), "#temporary-reduced-capacity") || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
			}
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		serve(h, func(r *http.Request) { *r = *r.WithContext(gone) })
		time.Sleep(time.Second)
		serve(h)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "secret detail") || !strings.Contains(lines[1], "unlogged=4") || strings.Contains(log.String(), "personal") {
			t.Errorf("the log:\n%s", &log)
		}

		c.Failed = func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errAway) {
				w.WriteHeader(http.StatusBadGateway)
			}
		}
		if w := serve(newMiddleware(t, c).Handler(ok)); w.Code != 502 || w.Body.Len() != 0 {
			t.Errorf("with Failed: %d %q", w.Code, w.Body)
		}
	})
}

func TestDenied(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerMinute(1)), Key: keyfunc.Const("k")}},
		Denied: func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
			if in, ok := middleware.FromContext(r.Context()); !ok || in.Refused != d.Refused {
				t.Errorf("in the context: %+v", in)
			}
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(d.Charges[d.Refused].Policy.Name()))
		},
	})
	h := m.Handler(ok)
	serve(h)
	if w := serve(h); w.Code != 418 || w.Body.String() != "p" || w.Header().Get("Retry-After") != "60" || w.Header().Get("X-RateLimit-Limit") != "1" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

func TestSkip(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerMinute(1)), Key: keyfunc.Const("k")}},
		Skip:  func(r *http.Request) bool { return r.Method == "OPTIONS" },
	})
	options := func(r *http.Request) { r.Method = "OPTIONS" }
	for range 3 {
		if w := serve(m.Handler(ok), options); w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "" {
			t.Errorf("skipped: %d %v", w.Code, w.Header())
		}
	}
	r := httptest.NewRequest("OPTIONS", "/", nil)
	if d, err := m.Check(r); err != nil || d.Refused != -1 || d.Results != nil {
		t.Errorf("Check of a skipped request: %+v, %v", d, err)
	}
	if w := serve(m.Handler(ok)); w.Code != 200 {
		t.Errorf("counted after all: %d", w.Code)
	}
}

// A handler may use what Handler is made of.
func TestCheckCountsEachTime(t *testing.T) {
	m := limiter(t, storetest.NewClock(), algorithms.PerMinute(2))
	for i, refused := range []int{-1, -1, 0} {
		d, err := m.Check(httptest.NewRequest("GET", "/", nil))
		if err != nil || d.Refused != refused || len(d.Charges) != 1 || d.Charges[0].Key != "k" {
			t.Errorf("call %d: %+v, %v", i+1, d, err)
		}
	}
}

func TestNilMiddleware(t *testing.T) {
	var m *middleware.Middleware
	if w := serve(m.Handler(ok)); w.Code != 500 || w.Body.String() != "Internal Server Error.\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if w := serve(limiter(t, storetest.NewClock(), algorithms.PerMinute(1)).Handler(nil)); w.Code != 500 {
		t.Errorf("a nil handler: %d", w.Code)
	}
	if d, err := m.Check(httptest.NewRequest("GET", "/", nil)); err == nil || d.Refused != -1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestFromContextOutside(t *testing.T) {
	if d, ok := middleware.FromContext(context.Background()); ok || d.Refused != -1 {
		t.Errorf("%+v, %v", d, ok)
	}
}
