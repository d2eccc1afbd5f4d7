package middleware_test

import (
	"errors"
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

// banning is a middleware with a rule for each phone number and one for each
// client, and a ban for an hour after three refusals.
func banning(t *testing.T, banKey keyfunc.Func, change ...func(*middleware.Config)) (*middleware.Middleware, *storetest.Clock) {
	clock := storetest.NewClock()
	c := middleware.Config{
		Store: memstore.New(memstore.Config{Clock: clock.Now}), Logger: slog.New(slog.DiscardHandler),
		Rules: []middleware.Rule{
			{Policy: policyOf(t, "phone", algorithms.SlidingLog{}, algorithms.PerMinute(1)), Key: keyfunc.Header("X-Phone")},
			{Policy: policyOf(t, "client", algorithms.FixedWindow{}, algorithms.PerMinute(5)), Key: client},
		},
		Ban: threeStrikes(t), BanKey: banKey,
	}
	for _, f := range change {
		f(&c)
	}
	return newMiddleware(t, c), clock
}

// asks is a request of a client for a phone number, with what is not "".
func asks(who, phone string) *http.Request {
	r := httptest.NewRequest("POST", "/", nil)
	for name, value := range map[string]string{"X-Client": who, "X-Phone": phone} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r
}

// ask is the status of requests at once of a client for a phone number.
func ask(t *testing.T, m *middleware.Middleware, who, phone string, want ...int) {
	t.Helper()
	for i, code := range want {
		w := httptest.NewRecorder()
		m.Handler(ok).ServeHTTP(w, asks(who, phone))
		if w.Code != code {
			t.Errorf("%q for %q, request %d: %d, want %d", who, phone, i+1, w.Code, code)
		}
	}
}

// The ban is the client's: it holds for all phone numbers, and whoever else asks
// for the same one is served. Any rule's refusals count.
func TestBanKey(t *testing.T) {
	m, clock := banning(t, client)
	ask(t, m, "a", "1", 200, 429, 429) // by the phone's limit
	ask(t, m, "a", "2", 200)
	clock.Advance(time.Minute)
	ask(t, m, "a", "3", 200, 429)
	ask(t, m, "a", "4", 429)
	ask(t, m, "b", "4", 200)
	ask(t, m, "b", "1", 200)
	clock.Advance(time.Hour - time.Microsecond)
	ask(t, m, "a", "5", 429)
	ask(t, m, "b", "5", 200)
	clock.Advance(time.Microsecond)
	ask(t, m, "a", "6", 200)
}

// Without BanKey the ban is that of the first rule's key, which is asked for once.
func TestBanKeyOfFirstRule(t *testing.T) {
	asked := 0
	m, _ := banning(t, nil, func(c *middleware.Config) {
		key := c.Rules[0].Key
		c.Rules[0].Key = func(r *http.Request) (string, error) {
			asked++
			return key(r)
		}
	})
	ask(t, m, "a", "1", 200, 429, 429, 429)
	ask(t, m, "b", "1", 429)
	ask(t, m, "a", "2", 200)
	if asked != 6 {
		t.Errorf("asked %d times for the keys of 6 requests", asked)
	}
}

// Where the first rule is left out, or finds no key, nobody is looked at.
func TestBanKeyOfFirstRuleMissing(t *testing.T) {
	skip := func(r *http.Request) (string, error) {
		if r.Header.Get("X-Phone") == "" {
			return "", keyfunc.ErrSkip
		}
		return "a number", nil
	}
	for _, c := range []struct {
		change func(*middleware.Config)
		code   int
	}{
		{func(c *middleware.Config) { c.Rules[0].Key = skip }, 200},
		{func(*middleware.Config) {}, 400},
		{func(c *middleware.Config) { c.Rules[0].Shadow = true }, 200},
	} {
		m, _ := banning(t, nil, c.change)
		ask(t, m, "a", "", c.code, c.code, c.code, c.code, c.code, 429, 429, 429)
		if d, err := m.Check(asks("a", "")); err != nil || d.Refused != 1 || d.Charges[2].Policy != nil || d.Results[2] != (algorithms.Result{}) {
			t.Errorf("%+v, %v", d, err)
		}
		ask(t, m, "b", "1", 200)
	}
}

// What BanKey can't tell is as what a rule's Key can't tell.
func TestBanKeyErrors(t *testing.T) {
	key := func(k string, err error) keyfunc.Func {
		return func(r *http.Request) (string, error) {
			if r.Header.Get("X-Phone") != "odd" {
				return "someone", nil
			}
			return k, err
		}
	}
	long := &tooLong{413}
	for name, c := range map[string]struct {
		key     keyfunc.Func
		code    int
		is      error // of Check
		charged int64 // under the rules
	}{
		"exempt":    {key("", keyfunc.ErrSkip), 200, nil, 1},
		"no key":    {key("", long), 400, long, 1},
		"empty key": {key("", nil), 400, keyfunc.ErrNoKey, 1},
		"failure":   {key("k", errAway), 503, errAway, 0},
	} {
		t.Run(name, func(t *testing.T) {
			trial, _ := banning(t, c.key, func(c *middleware.Config) { c.Rules[1].Shadow = true })
			ask(t, trial, "a", "odd", c.code)
			m, clock := banning(t, c.key)
			ask(t, m, "a", "1", 200, 429, 429, 429) // banned
			clock.Advance(time.Minute)
			ask(t, m, "a", "odd", c.code)
			if d, err := m.Check(asks("a", "2")); err != nil || d.Refused != 2 || d.Results[1].Remaining != 5-c.charged {
				t.Errorf("%+v, %v", d, err)
			}
			clock.Advance(time.Minute)
			if _, err := m.Check(asks("a", "odd")); !errors.Is(err, c.is) {
				t.Errorf("%v", err)
			}
			if c.charged == 1 {
				ask(t, m, "a", "odd", 429) // by the phone's limit
				if d, err := m.Check(asks("a", "odd")); err != nil || d.Refused != 0 || d.Results[1].Remaining != 4 {
					t.Errorf("%+v, %v", d, err)
				}
			}
			clock.Advance(time.Hour)
			if d, err := m.Check(asks("a", "2")); err != nil || d.Refused != -1 || d.Results[2].Remaining != 3 {
				t.Errorf("after the ban: %+v, %v", d, err)
			}
		})
	}
}

// A banned client that shows no key for a rule is told that it is banned, not
// what is missing.
func TestBanWithoutOtherKeys(t *testing.T) {
	m, _ := banning(t, client)
	ask(t, m, "a", "", 400)
	ask(t, m, "a", "1", 200, 429, 429, 429)
	ask(t, m, "a", "", 429)
	everything, _ := banning(t, client, func(c *middleware.Config) {
		c.Rules = c.Rules[:1]
		c.Rules[0].Key = keyfunc.First(c.Rules[0].Key, leftOut)
	})
	ask(t, everything, "a", "1", 200, 429, 429, 429)
	ask(t, everything, "a", "", 429)
	ask(t, everything, "b", "", 200)
}

// A rule on trial strikes nobody.
func TestShadowNeverStrikes(t *testing.T) {
	m, _ := banning(t, client, func(c *middleware.Config) { c.Rules[0].Shadow = true })
	ask(t, m, "a", "1", 200, 200, 200, 200, 200)
	if d, err := m.Check(asks("b", "1")); err != nil || !d.Results[0].Limited || d.Results[2].Remaining != 3 || d.Refused != -1 {
		t.Errorf("%+v, %v", d, err)
	}
	d, err := m.Check(asks("a", "1"))
	if err != nil || d.Results[2].Remaining != 2 || d.Refused != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}
