package middleware_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

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

// The Accept header decides, whatever its case and however it is cut into lines;
// and nothing of the body that was meant to be is told of this one.
func TestAccept(t *testing.T) {
	h := limiter(t, storetest.NewClock(), algorithms.PerHour(1)).Handler(ok)
	serve(h)
	for _, c := range []struct {
		accept []string
		json   bool
	}{
		{[]string{"text/html", "application/json"}, true},
		{[]string{"text/html, application/json"}, true},
		{[]string{"text/plain, application/json;q=0.1"}, true},
		{[]string{"application/json;q=1"}, true},
		{[]string{"application/json;v=0"}, true},
		{[]string{"application/problem+json;q=0, application/json"}, true},
		{[]string{"application/json;q=0, */*"}, false},
		{[]string{"application/json;Q=0"}, false},
		{[]string{"application/json ; q=0."}, false},
	} {
		w := serve(outer(h, map[string]string{"Last-Modified": "x"}), func(r *http.Request) { r.Header["Accept"] = c.accept })
		if (w.Header().Get("Content-Type") == "application/problem+json") != c.json {
			t.Errorf("%q: %v", c.accept, w.Header())
		}
		wantHeaders(t, w, map[string]string{"X-Content-Type-Options": "nosniff", "Last-Modified": ""})
	}
}

// Of a Decision that refused nothing, a handler that calls DefaultDenied all the
// same gets a refusal that promises nothing.
func TestDefaultDeniedWithoutRefusal(t *testing.T) {
	passed, err := limiter(t, storetest.NewClock(), algorithms.PerMinute(1)).Check(httptest.NewRequest("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []middleware.Decision{passed, {}, {Refused: -1}} {
		w := httptest.NewRecorder()
		middleware.DefaultDenied(w, httptest.NewRequest("GET", "/", nil), d)
		if w.Code != 429 || w.Body.String() != "Too Many Requests. Try again later.\n" {
			t.Errorf("%+v: %d %q", d, w.Code, w.Body)
		}
	}
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

// A Denied that writes no status lets the answer be 200, but not the request pass.
func TestDeniedWritesNothing(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}), Denied: func(http.ResponseWriter, *http.Request, middleware.Decision) {},
		Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerMinute(1)), Key: keyfunc.Const("k")}},
	})
	serve(m.Handler(ok))
	if w := serve(m.Handler(ok)); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Retry-After") != "60" {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
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
