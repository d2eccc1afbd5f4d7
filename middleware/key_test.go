package middleware_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

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

// leftOut says so with an error of its own.
func leftOut(*http.Request) (string, error) { return "", fmt.Errorf("admins: %w", keyfunc.ErrSkip) }

// two is two rules, of which the one at i has this key and the other a key.
func two(t *testing.T, i int, key keyfunc.Func) []middleware.Rule {
	rules := []middleware.Rule{
		{Policy: policy(t, "a", algorithms.PerHour(5)), Key: keyfunc.Const("k")},
		{Policy: policy(t, "b", algorithms.PerHour(5)), Key: keyfunc.Const("k")},
	}
	rules[i].Key = key
	return rules
}

// A rule that is left out leaves the others as they are, where they stand.
func TestLeftOutRule(t *testing.T) {
	for i := range 2 {
		c := middleware.Config{Store: memstore.New(memstore.Config{}), Rules: two(t, i, leftOut), Logger: slog.New(slog.DiscardHandler)}
		wantHeaders(t, serve(newMiddleware(t, c).Handler(ok)), map[string]string{"X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "4"})
		c.Store = failing{}
		if w := serve(newMiddleware(t, c).Handler(ok)); w.Code != 503 {
			t.Errorf("the store fails: %d", w.Code)
		}
	}
}

// Where a key can't be found out, nothing is charged under any rule.
func TestKeyFailureChargesNothing(t *testing.T) {
	for i := range 2 {
		away := true
		m := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{}), Logger: slog.New(slog.DiscardHandler),
			Rules: two(t, i, func(*http.Request) (string, error) {
				if away {
					return "", errAway
				}
				return "k", nil
			}),
		})
		if w := serve(m.Handler(ok)); w.Code != 503 {
			t.Errorf("%d", w.Code)
		}
		away = false
		wantHeaders(t, serve(m.Handler(ok)), map[string]string{"X-RateLimit-Remaining": "4"})
	}
}

// Of several missing keys each can be told, and a single one is told as it is.
func TestMissingKeys(t *testing.T) {
	long := func(*http.Request) (string, error) { return "", &tooLong{413} }
	for i := range 2 {
		rules := two(t, i, long)
		rules[1-i].Key = keyfunc.Header("X-None")
		m := newMiddleware(t, middleware.Config{Store: memstore.New(memstore.Config{}), Rules: rules})
		_, err := m.Check(httptest.NewRequest("GET", "/", nil))
		if as := (*tooLong)(nil); !errors.As(err, &as) {
			t.Errorf("rule %d: %v", i, err)
		}
		m = newMiddleware(t, middleware.Config{Store: memstore.New(memstore.Config{}), Rules: two(t, i, long)})
		if _, err := m.Check(httptest.NewRequest("GET", "/", nil)); err == nil || err.Error() != "too long" {
			t.Errorf("rule %d alone: %v", i, err)
		} else if _, same := err.(*tooLong); !same {
			t.Errorf("rule %d alone: %T", i, err)
		}
	}
}
