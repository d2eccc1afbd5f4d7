package middleware_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

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

// A refusal names the policies that refuse, and no rule on trial.
func TestShadowIsNotViolated(t *testing.T) {
	c := middleware.Config{Store: memstore.New(memstore.Config{})}
	for _, name := range []string{"try", "real", "wide"} {
		rule := middleware.Rule{Policy: policy(t, name, algorithms.PerHour(1)), Key: keyfunc.Const("k"), Shadow: name == "try"}
		if name == "wide" {
			rule.Policy = policy(t, name, algorithms.PerHour(9))
		}
		c.Rules = append(c.Rules, rule)
	}
	h := newMiddleware(t, c).Handler(ok)
	serve(h)
	w := serve(h, accept("application/json"))
	var body struct {
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || !slices.Equal(body.Violated, []string{"real"}) {
		t.Errorf("%d %q, %v", w.Code, w.Body, err)
	}
}

// Whatever is wrong with a rule on trial, it is left out, and the log says so.
func TestShadowMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		rule middleware.Rule
		log  string
	}{
		"no key":        {middleware.Rule{Key: keyfunc.Header("X-User-ID")}, "level=DEBUG"},
		"an empty key":  {middleware.Rule{Key: func(*http.Request) (string, error) { return "", nil }}, "level=DEBUG"},
		"a failure":     {middleware.Rule{Key: func(*http.Request) (string, error) { return "", errAway }}, "level=ERROR"},
		"negative cost": {middleware.Rule{Key: keyfunc.Const("k"), Cost: func(*http.Request) int64 { return -1 }}, "level=ERROR"},
	} {
		var log bytes.Buffer
		c.rule.Policy, c.rule.Shadow = policy(t, "try", algorithms.PerHour(10)), true
		m := newMiddleware(t, middleware.Config{
			Store:  memstore.New(memstore.Config{}),
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Rules:  []middleware.Rule{c.rule, {Policy: policy(t, "real", algorithms.PerHour(10)), Key: keyfunc.Const("k")}},
		})
		w := serve(m.Handler(ok))
		if w.Code != 200 || w.Header().Get("X-RateLimit-Remaining") != "9" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.log) {
			t.Errorf("%s: the log: %q", name, got)
		}
	}
}

// A rule on trial that fails does not keep a failure of the store from the log.
func TestShadowHidesNoFailure(t *testing.T) {
	var log bytes.Buffer
	h := newMiddleware(t, middleware.Config{
		Store: failing{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Rules: []middleware.Rule{
			{Policy: policy(t, "try", algorithms.PerHour(1)), Key: func(*http.Request) (string, error) { return "", errAway }, Shadow: true},
			{Policy: policy(t, "real", algorithms.PerHour(1)), Key: keyfunc.Const("k")},
		},
	}).Handler(ok)
	if w := serve(h); w.Code != 503 || !strings.Contains(log.String(), "shadow rule was left out") || !strings.Contains(log.String(), "could not be decided") {
		t.Errorf("%d, the log: %s", w.Code, &log)
	}
}

// A rule on trial for which the store has no room refuses nothing.
func TestShadowWithoutRoom(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{MaxKeys: 1, Clock: storetest.NewClock().Now}),
		Rules: []middleware.Rule{
			{Policy: policy(t, "try", algorithms.PerHour(10)), Key: keyfunc.Const("k"), Shadow: true},
			{Policy: policy(t, "real", algorithms.PerHour(10)), Key: keyfunc.Const("k")},
		},
	})
	for _, left := range []string{"9", "8"} {
		w := serve(m.Handler(ok))
		if w.Code != 200 {
			t.Errorf("%d", w.Code)
		}
		wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": left})
	}
}
