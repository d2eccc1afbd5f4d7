package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// outcomesTo is an observer that writes down outcomes.
func outcomesTo(list *[]string) func(context.Context, middleware.Event) {
	return func(_ context.Context, e middleware.Event) { *list = append(*list, e.Outcome.String()) }
}

// slow is a store that takes its time.
type slow struct{ store.Store }

func (s slow) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	time.Sleep(3 * time.Millisecond)
	return s.Store.Take(ctx, charges, results)
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []string
		write := func(_ context.Context, e middleware.Event) {
			var b strings.Builder
			fmt.Fprintf(&b, "%v passed=%t policy=%q err=%v latency=%v", e.Outcome, e.Passed, e.Policy, e.Err, e.Latency)
			for r := range e.Rules() {
				fmt.Fprintf(&b, " [%s %s cost=%d %v limited=%t left=%d near=%t key=%q]",
					r.Policy, r.Algorithm, r.Cost, r.Mode, r.Result.Limited, r.Result.Remaining, r.Near, r.Key)
			}
			events = append(events, b.String())
		}
		config := middleware.Config{
			Store: slow{memstore.New(memstore.Config{})},
			Rules: []middleware.Rule{
				{Policy: policy(t, "user", algorithms.PerHour(2)), Key: keyfunc.Header("X-User")},
				{Policy: policy(t, "trial", algorithms.PerHour(1)), Key: keyfunc.Const("all"), Shadow: true},
				{Policy: policy(t, "late", algorithms.PerHour(100)), Key: func(r *http.Request) (string, error) { return "", keyfunc.ErrSkip }},
			},
			Ban:     threeStrikes(t),
			BanKey:  keyfunc.Header("X-Ban"),
			Block:   func(r *http.Request) (bool, error) { return r.Header.Get("X-Bad") != "", nil },
			Skip:    func(r *http.Request) bool { return r.URL.Path == "/health" },
			Observe: write,
		}
		h := newMiddleware(t, config).Handler(ok)
		user := func(r *http.Request) { r.Header.Set("X-User", "u"); r.Header.Set("X-Ban", "b") }
		for range 5 {
			serve(h, user)
		}
		serve(h)
		serve(h, user, func(r *http.Request) { r.Header.Set("X-Bad", "1") })
		serve(h, func(r *http.Request) { r.URL.Path = "/health" })
		want := []string{
			`allowed passed=true policy="" err=<nil> latency=3ms [user gcra cost=1 enforce limited=false left=1 near=false key=""] [trial gcra cost=1 shadow limited=false left=0 near=true key=""] [ban ban cost=1 strike limited=false left=3 near=false key=""]`,
			`allowed passed=true policy="" err=<nil> latency=3ms [user gcra cost=1 enforce limited=false left=0 near=true key=""] [trial gcra cost=1 shadow limited=true left=0 near=false key=""] [ban ban cost=1 strike limited=false left=3 near=false key=""]`,
			`refused passed=false policy="user" err=<nil> latency=3ms [user gcra cost=1 enforce limited=true left=0 near=false key=""] [trial gcra cost=1 shadow limited=true left=0 near=false key=""] [ban ban cost=1 strike limited=false left=2 near=false key=""]`,
			`refused passed=false policy="user" err=<nil> latency=3ms [user gcra cost=1 enforce limited=true left=0 near=false key=""] [trial gcra cost=1 shadow limited=true left=0 near=false key=""] [ban ban cost=1 strike limited=false left=1 near=false key=""]`,
			`banned passed=false policy="ban" err=<nil> latency=3ms [user gcra cost=1 enforce limited=true left=0 near=false key=""] [trial gcra cost=1 shadow limited=true left=0 near=false key=""] [ban ban cost=1 strike limited=true left=0 near=false key=""]`,
			"no_key passed=false",
			`blocked passed=false policy="" err=weir: the request is blocked latency=0s`,
			`exempted passed=true policy="" err=<nil> latency=0s`,
		}
		if len(events) != len(want) {
			t.Fatalf("%d events, want %d:\n%s", len(events), len(want), strings.Join(events, "\n"))
		}
		for i := range want {
			if !strings.HasPrefix(events[i], want[i]) {
				t.Errorf("event %d:\n got %s\nwant %s", i, events[i], want[i])
			}
		}

		events, config.ObserveKeys = nil, true
		if d, err := newMiddleware(t, config).Check(func() *http.Request {
			r := httptest.NewRequest("GET", "/", nil)
			user(r)
			return r
		}()); err != nil || d.Refused < 0 {
			t.Errorf("Check: %v, %v", d, err)
		}
		if len(events) != 1 || !strings.Contains(events[0], `key="u"`) || !strings.Contains(events[0], `key="b"`) {
			t.Errorf("with ObserveKeys: %q", events)
		}

		events, config.Store = nil, failing{}
		serve(newMiddleware(t, config).Handler(ok), user)
		if len(events) != 1 || !strings.HasPrefix(events[0], `failed passed=false policy="" err=`) || strings.Contains(events[0], "[") {
			t.Errorf("a failure: %q", events)
		}
	})
}

func TestLogEvents(t *testing.T) {
	var log bytes.Buffer
	newLog := func(level slog.Level) func(context.Context, middleware.Event) {
		log.Reset()
		return middleware.LogEvents(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == "latency" {
					return slog.Attr{}
				}
				return a
			},
		})))
	}
	config := middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{
			{Policy: policy(t, "user", algorithms.PerHour(2)), Key: keyfunc.Const("a personal key")},
			{Policy: policy(t, "trial", algorithms.PerHour(1)), Key: keyfunc.Const("another"), Shadow: true},
		},
	}
	config.Observe = newLog(slog.LevelInfo)
	h := newMiddleware(t, config).Handler(ok)
	for range 3 {
		serve(h)
	}
	want := `level=INFO msg="rate limit" outcome=allowed passed=true user.limited=false user.remaining=0 user.cost=1 user.near=true trial.limited=true trial.remaining=0 trial.cost=1 trial.mode=shadow
level=INFO msg="rate limit" outcome=refused passed=false policy=user user.limited=true user.remaining=0 user.cost=1 trial.limited=true trial.remaining=0 trial.cost=1 trial.mode=shadow
`
	if log.String() != want {
		t.Errorf("got\n%swant\n%s", &log, want)
	}

	config.Observe, config.ObserveKeys = newLog(slog.LevelDebug), true
	serve(newMiddleware(t, config).Handler(ok))
	if got := log.String(); !strings.Contains(got, `user.key="a personal key"`) {
		t.Errorf("with ObserveKeys: %s", got)
	}
	config.Observe, config.Skip = newLog(slog.LevelDebug), func(*http.Request) bool { return true }
	serve(newMiddleware(t, config).Handler(ok))
	if got := log.String(); got != "level=DEBUG msg=\"rate limit\" outcome=exempted passed=true\n" {
		t.Errorf("exempted: %s", got)
	}
	config.Observe, config.Skip, config.Store = newLog(slog.LevelError), nil, failing{}
	config.Logger = slog.New(slog.DiscardHandler)
	serve(newMiddleware(t, config).Handler(ok))
	if got := log.String(); !strings.HasPrefix(got, `level=ERROR msg="rate limit" outcome=failed passed=false error="`) {
		t.Errorf("failed: %s", got)
	}
	old := slog.Default()
	defer slog.SetDefault(old)
	log.Reset()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	config.Observe = middleware.LogEvents(nil)
	serve(newMiddleware(t, config).Handler(ok))
	if !strings.Contains(log.String(), "outcome=failed") {
		t.Errorf("the default logger: %s", &log)
	}
}

func TestOutcomeString(t *testing.T) {
	if s := middleware.Bypassed.String() + " " + middleware.Outcome(99).String(); s != "bypassed unknown" {
		t.Error(s)
	}
}

// The whole on trial: the same answers in events, and nobody kept out.
func TestShadowOfAll(t *testing.T) {
	var outcomes []string
	var would int
	var log bytes.Buffer
	s := &seen{Store: memstore.New(memstore.Config{})}
	config := middleware.Config{
		Store:  s,
		Shadow: true,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Rules: []middleware.Rule{
			{Policy: policy(t, "a", algorithms.PerHour(1)), Key: keyfunc.Const("k"), Pace: true},
			{Policy: policy(t, "b", algorithms.PerHour(2)), Key: keyfunc.Header("X-User")},
		},
		Ban:    threeStrikes(t),
		BanKey: keyfunc.Header("X-None"),
		Block:  func(r *http.Request) (bool, error) { return r.Header.Get("X-Bad") != "", nil },
		Observe: func(ctx context.Context, e middleware.Event) {
			outcomesTo(&outcomes)(ctx, e)
			for r := range e.Rules() {
				if r.Result.Limited && r.Mode == store.Shadow {
					would++
				}
			}
		},
	}
	m := newMiddleware(t, config)
	for i, change := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("X-User", "u") },
		func(r *http.Request) { r.Header.Set("X-User", "u") },
		func(r *http.Request) { r.Header.Set("X-User", "u") },
		func(r *http.Request) {}, // without a key
		func(r *http.Request) { r.Header.Set("X-Bad", "1") },
	} {
		w := serve(m.Handler(ok), change)
		if w.Code != 200 || w.Body.String() != "ok" || len(w.Header()) != 1 { // Content-Type
			t.Errorf("request %d: %d %v %q", i, w.Code, w.Header(), w.Body)
		}
	}
	if got := strings.Join(outcomes, " "); got != "allowed allowed allowed allowed blocked" || would != 4 || len(s.charges) != 4 {
		t.Errorf("outcomes: %s; %d would have been refused, in %d commands", got, would, len(s.charges))
	}
	outcomes, config.Store = nil, failing{}
	m = newMiddleware(t, config)
	if w := serve(m.Handler(ok)); w.Code != 200 || len(outcomes) != 1 || outcomes[0] != "failed" || !strings.Contains(log.String(), "secret detail") {
		t.Errorf("a failure: %d, %q; the log: %s", w.Code, outcomes, &log)
	}
	if d, err := m.Check(httptest.NewRequest("GET", "/", nil)); err != nil || d.Refused != -1 {
		t.Errorf("Check: %v, %v", d, err)
	}
}

// Where every rule is on trial, a failure of the store keeps nobody out either;
// one that is not is enough, and a ban.
func TestFailureUnderShadowRules(t *testing.T) {
	trial := middleware.Rule{Policy: policy(t, "a", algorithms.PerHour(1)), Key: keyfunc.Const("k"), Shadow: true}
	real := middleware.Rule{Policy: policy(t, "b", algorithms.PerHour(1)), Key: keyfunc.Const("k")}
	silent := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		config middleware.Config
		status int
	}{
		"all on trial":   {middleware.Config{Rules: []middleware.Rule{trial}}, 200},
		"one in earnest": {middleware.Config{Rules: []middleware.Rule{trial, real}}, 503},
		"a ban":          {middleware.Config{Rules: []middleware.Rule{trial}, Ban: threeStrikes(t)}, 503},
		"blocked": {middleware.Config{Rules: []middleware.Rule{trial}, Block: func(*http.Request) (bool, error) {
			return true, nil
		}}, 403},
		"unknown": {middleware.Config{Rules: []middleware.Rule{trial}, Block: func(*http.Request) (bool, error) {
			return false, errors.New("unknown")
		}}, 503},
	} {
		c.config.Store, c.config.Logger = failing{}, silent
		if w := serve(newMiddleware(t, c.config).Handler(ok)); w.Code != c.status {
			t.Errorf("%s: %d, want %d", name, w.Code, c.status)
		}
	}
}

func TestSkipPreflight(t *testing.T) {
	config := middleware.Config{
		Store:         memstore.New(memstore.Config{}),
		Rules:         []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("k")}},
		SkipPreflight: true,
	}
	h := newMiddleware(t, config).Handler(ok)
	preflight := func(r *http.Request) {
		r.Method = http.MethodOptions
		r.Header.Set("Origin", "https://app.example")
		r.Header.Set("Access-Control-Request-Method", "POST")
	}
	serve(h) // takes the one there is
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"preflight":   {preflight, 200},
		"no origin":   {func(r *http.Request) { preflight(r); r.Header.Del("Origin") }, 429},
		"no method":   {func(r *http.Request) { preflight(r); r.Header.Del("Access-Control-Request-Method") }, 429},
		"not OPTIONS": {func(r *http.Request) { preflight(r); r.Method = "POST" }, 429},
	} {
		if w := serve(h, c.change); w.Code != c.status || (w.Header().Get("X-RateLimit-Limit") == "") != (c.status == 200) {
			t.Errorf("%s: %d %v, want %d", name, w.Code, w.Header(), c.status)
		}
	}
	config.SkipPreflight = false
	h = newMiddleware(t, config).Handler(ok)
	if w := serve(h, preflight); w.Code != 429 {
		t.Errorf("without SkipPreflight: %d", w.Code)
	}
}

// What nobody decided, as by a store that fails open, is not near its limit.
func TestUndecidedIsNotNear(t *testing.T) {
	near := 0
	m := newMiddleware(t, middleware.Config{
		Store: store.FailOpen(failing{}, nil),
		Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("k")}},
		Observe: func(_ context.Context, e middleware.Event) {
			for r := range e.Rules() {
				if r.Near {
					near++
				}
			}
		},
	})
	if w := serve(m.Handler(ok)); w.Code != 200 || near > 0 {
		t.Errorf("%d, near %d times", w.Code, near)
	}
}
