package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
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

// threeStrikes bans for an hour after three refusals within ten minutes.
func threeStrikes(t testing.TB) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.Ban{Strikes: 3, Within: 10 * time.Minute, For: time.Hour}.Policy("ban")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// by makes a request of this client.
func by(client string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-Client", client) }
}

var client = keyfunc.Header("X-Client")

// everyAlgorithm counts rules, with what a third request at once has to wait of
// two a minute.
var everyAlgorithm = []struct {
	algorithms.Algorithm
	wait string
}{
	{algorithms.GCRA{}, "30"},
	{algorithms.LeakyBucket{}, "30"},
	{algorithms.LeakyBucket{Stepped: true}, "60"},
	{algorithms.TokenBucket{}, "30"},
	{algorithms.TokenBucket{Stepped: true}, "60"},
	{algorithms.FixedWindow{}, "60"},
	{algorithms.SlidingCounter{}, "90"},
	{algorithms.SlidingLog{}, "60"},
}

// Who is refused three times is banned for an hour from the third refusal on,
// however often they ask meanwhile, and then is as new. Nobody else is.
func TestBan(t *testing.T) {
	for _, a := range everyAlgorithm {
		t.Run(fmt.Sprintf("%T%v", a.Algorithm, a.Algorithm), func(t *testing.T) {
			clock := storetest.NewClock()
			m := newMiddleware(t, middleware.Config{
				Store: memstore.New(memstore.Config{Clock: clock.Now}),
				Rules: []middleware.Rule{{Policy: policyOf(t, "rule", a.Algorithm, algorithms.PerMinute(2)), Key: client}},
				Ban:   threeStrikes(t),
			})
			h := m.Handler(ok)
			want := func(who string, code int, limit, remaining, retry string) {
				t.Helper()
				w := serve(h, by(who))
				if w.Code != code {
					t.Errorf("%s: %d, want %d", who, w.Code, code)
				}
				wantHeaders(t, w, map[string]string{"X-RateLimit-Limit": limit, "X-RateLimit-Remaining": remaining, "Retry-After": retry})
			}
			for range 2 { // as new after the ban
				want("a", 200, "2", "1", "")
				want("a", 200, "2", "0", "")
				want("a", 429, "2", "0", a.wait)
				want("a", 429, "2", "0", a.wait)
				for left := time.Hour; left > 0; left -= time.Minute {
					want("a", 429, "3", "0", strconv.Itoa(int(left.Seconds())))
					clock.Advance(time.Minute - time.Microsecond)
					want("a", 429, "3", "0", strconv.Itoa(int((left - time.Minute + time.Second).Seconds())))
					clock.Advance(time.Microsecond)
				}
				want("b", 200, "2", "1", "")
				clock.Advance(2 * time.Minute)
			}
		})
	}
}

// Any policy bans. Who waits as long as each refusal says is let in, also after
// the one that bans.
func TestBanKeepsItsPromise(t *testing.T) {
	bans := []*algorithms.Policy{threeStrikes(t)}
	for _, a := range everyAlgorithm {
		bans = append(bans, policyOf(t, "ban", a.Algorithm, algorithms.PerHour(3)))
	}
	for _, rule := range everyAlgorithm {
		for _, ban := range bans {
			clock := storetest.NewClock()
			h := newMiddleware(t, middleware.Config{
				Store: memstore.New(memstore.Config{Clock: clock.Now}),
				Rules: []middleware.Rule{{Policy: policyOf(t, "rule", rule.Algorithm, per(2, 10*time.Second, 0)), Key: client}},
				Ban:   ban,
			}).Handler(ok)
			banned := 0
			for range 40 {
				w := serve(h, by("a"))
				if w.Code == 200 {
					continue
				}
				if w.Header().Get("X-RateLimit-Limit") == "3" {
					banned++
				}
				wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
				if err != nil {
					t.Fatal(err)
				}
				clock.Advance(time.Duration(wait) * time.Second)
				if w := serve(h, by("a")); w.Code != 200 {
					t.Errorf("%T%v, ban %s: told to wait for %d s, and then %d %v", rule.Algorithm, rule.Algorithm, ban.ID(), wait, w.Code, w.Header())
				}
			}
			if banned == 0 {
				t.Errorf("%T%v, ban %s: never banned", rule.Algorithm, rule.Algorithm, ban.ID())
			}
		}
	}
}

// seen is a store that remembers what it was asked.
type seen struct {
	store.Store
	policies []*algorithms.Policy
	charges  [][]store.Charge
}

func (s *seen) Validate(policies ...*algorithms.Policy) error {
	s.policies = policies
	return s.Store.Validate(policies...)
}

func (s *seen) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.charges = append(s.charges, slices.Clone(charges))
	return s.Store.Take(ctx, charges, results)
}

// The ban is the last charge of one group with however many rules.
func TestBanIsOfTheGroup(t *testing.T) {
	for rules := 1; rules <= 6; rules++ {
		s := &seen{Store: memstore.New(memstore.Config{Clock: storetest.NewClock().Now})}
		c := middleware.Config{Store: s, Ban: threeStrikes(t), BanKey: keyfunc.Const("who")}
		for i := range rules {
			c.Rules = append(c.Rules, middleware.Rule{Policy: policy(t, fmt.Sprint("p", i), algorithms.PerHour(int64(10-i))), Key: keyfunc.Const("k")})
		}
		var passed middleware.Decision
		h := newMiddleware(t, c).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed, _ = middleware.FromContext(r.Context()) }))
		least := 10 - rules + 1
		for i := range least {
			wantHeaders(t, serve(h), map[string]string{"X-RateLimit-Limit": strconv.Itoa(least), "X-RateLimit-Remaining": strconv.Itoa(least - i - 1)})
		}
		if n := len(passed.Charges); passed.Refused != -1 || n != rules+1 || len(passed.Results) != n || passed.Results[rules].Remaining != 3 || passed.Results[rules].Limited {
			t.Errorf("%d rules: %+v", rules, passed)
		}
		if len(s.policies) != rules+1 || s.policies[rules] != c.Ban {
			t.Errorf("%d rules: the store was asked about %v", rules, s.policies)
		}
		if len(s.charges) != least {
			t.Errorf("%d rules: %d groups for %d requests", rules, len(s.charges), least)
		}
		for _, group := range s.charges {
			if len(group) != rules+1 || group[rules] != (store.Charge{Policy: c.Ban, Key: "who", Cost: 1, Mode: store.Strike}) {
				t.Errorf("%d rules: the group %+v", rules, group)
			}
		}
	}
}

// A refusal by the ban reads like any other, and the Decision says whose it is.
func TestBanRefusal(t *testing.T) {
	var denied middleware.Decision
	c := middleware.Config{
		Store: memstore.New(memstore.Config{Clock: storetest.NewClock().Now}),
		Rules: []middleware.Rule{{Policy: policy(t, "rule", algorithms.PerMinute(1)), Key: client}},
		Ban:   threeStrikes(t),
		Denied: func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
			denied = d
			middleware.DefaultDenied(w, r, d)
		},
	}
	h := newMiddleware(t, c).Handler(ok)
	serve(h, by("a"))
	for i, want := range []struct {
		refused  int
		left     int64
		reset    string
		detail   string
		violated []string
	}{
		{0, 2, "60", "Try again in 60 seconds.", []string{"rule"}},
		{0, 1, "60", "Try again in 60 seconds.", []string{"rule"}},
		{1, 0, "3600", "Try again in 3600 seconds.", []string{"rule", "ban"}},
		{1, 0, "3600", "Try again in 3600 seconds.", []string{"rule", "ban"}},
	} {
		w := serve(h, by("a"), accept("application/json"))
		var body struct {
			Detail   string
			Violated []string `json:"violated-policies"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Detail != want.detail || !slices.Equal(body.Violated, want.violated) {
			t.Errorf("refusal %d: %q, %v", i+1, w.Body, err)
		}
		wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": want.reset, "Cache-Control": "no-store"})
		if denied.Refused != want.refused || denied.Results[1].Remaining != want.left || denied.Results[1].Limited != (want.left == 0) || denied.Delay != 0 {
			t.Errorf("refusal %d: %+v", i+1, denied)
		}
	}
}

// The longest wait is told, be it a rule's; and that there is none, if the cost
// can never be had.
func TestBanAndLongerWaits(t *testing.T) {
	h := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{Clock: storetest.NewClock().Now}),
		Rules: []middleware.Rule{{Policy: policy(t, "rule", algorithms.PerDay(1)), Key: client, Cost: func(r *http.Request) int64 { return 1 + r.ContentLength }}},
		Ban:   threeStrikes(t),
	}).Handler(ok)
	serve(h, by("a"))
	for range 4 {
		wantHeaders(t, serve(h, by("a")), map[string]string{"Retry-After": "86400", "X-RateLimit-Limit": "1"})
	}
	more := func(r *http.Request) { r.ContentLength = 1 }
	for range 4 {
		wantHeaders(t, serve(h, by("b"), more), map[string]string{"Retry-After": "", "X-RateLimit-Limit": "1"})
	}
	wantHeaders(t, serve(h, by("b")), map[string]string{"Retry-After": "3600", "X-RateLimit-Limit": "3"})
}

// Only refusals make a key for the ban, and nothing is kept when it is over.
func TestBanMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		h := newMiddleware(t, middleware.Config{
			Store: s, Ban: threeStrikes(t),
			Rules: []middleware.Rule{{Policy: policy(t, "rule", algorithms.PerMinute(1)), Key: client}},
		}).Handler(ok)
		for i, want := range []int{100, 200, 200, 200, 200} {
			for n := range 100 {
				serve(h, by(strconv.Itoa(n)))
			}
			if got := s.Len(); got != want {
				t.Errorf("round %d: %d keys, want %d", i+1, got, want)
			}
		}
		time.Sleep(2 * time.Hour)
		if got := s.Len(); got != 0 {
			t.Errorf("after all bans: %d keys", got)
		}
	})
}

// answering is a store that gives these answers.
type answering []algorithms.Result

func (answering) Validate(...*algorithms.Policy) error { return nil }

func (a answering) Take(_ context.Context, _ []store.Charge, results []algorithms.Result) error {
	copy(results, a)
	return nil
}

// Where a store does not decide the ban, or lets a group pass, nobody is banned.
func TestBanByOddStores(t *testing.T) {
	passes := algorithms.Result{Limit: 1, ResetAfter: time.Minute}
	refuses := algorithms.Result{Limited: true, Limit: 1, RetryAfter: time.Minute, ResetAfter: time.Minute}
	for _, c := range []struct {
		rule, ban algorithms.Result
		refused   int
	}{
		{algorithms.Result{}, algorithms.Result{}, -1},
		{refuses, algorithms.Result{}, 0},
		{passes, algorithms.Result{Limit: 3}, -1},
	} {
		m := newMiddleware(t, middleware.Config{
			Store: answering{c.rule, c.ban}, Ban: threeStrikes(t),
			Rules: []middleware.Rule{{Policy: policy(t, "rule", algorithms.PerMinute(1)), Key: keyfunc.Const("k")}},
		})
		if d, err := m.Check(httptest.NewRequest("GET", "/", nil)); err != nil || d.Refused != c.refused || d.Results[1].Limited {
			t.Errorf("%+v, %v", d, err)
		}
	}
}
