package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
)

// giving is a Middleware of two rules and a ban, with a Decision that took 1 and 3.
type giving struct {
	*middleware.Middleware
	store    store.Store
	policies []*algorithms.Policy // a, b and the ban
	d        middleware.Decision
	request  *http.Request // as Allow returned it
}

func newGiving(t testing.TB, change ...func(*middleware.Config)) *giving {
	t.Helper()
	c, a := refunding(t, nil)
	b := policyOf(t, "b", algorithms.SlidingLog{}, algorithms.PerHour(10))
	c.Ban = threeStrikes(t)
	c.Rules = append(c.Rules, middleware.Rule{Policy: b, Key: keyfunc.Const("k"), Cost: func(*http.Request) int64 { return 3 }})
	for _, f := range change {
		f(&c)
	}
	g := &giving{Middleware: newMiddleware(t, c), store: c.Store, policies: []*algorithms.Policy{a, b, c.Ban}}
	var passes bool
	if g.request, passes = g.Allow(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)); !passes {
		t.Fatal("refused")
	}
	g.d, _ = middleware.FromContext(g.request.Context())
	return g
}

func (g *giving) left(t testing.TB, want ...int64) {
	t.Helper()
	wantLeft(t, g.store, g.policies, want...)
}

// refund and forget want no error.
func (g *giving) refund(t testing.TB, policies ...string) {
	t.Helper()
	if err := g.Refund(t.Context(), g.d, policies...); err != nil {
		t.Error(err)
	}
}

func (g *giving) forget(t testing.TB, policies ...string) {
	t.Helper()
	if err := g.Forget(t.Context(), g.d, policies...); err != nil {
		t.Error(err)
	}
}

// banned takes all of the ban.
func (g *giving) banned(t testing.TB) {
	t.Helper()
	if _, err := store.Take(t.Context(), g.store, g.policies[2], "k", 3); err != nil {
		t.Fatal(err)
	}
}

func TestRefund(t *testing.T) {
	g := newGiving(t)
	g.left(t, 9, 7, 3)
	g.refund(t, "b", "ban")
	g.left(t, 9, 10, 3)
	g.refund(t, "b")
	g.left(t, 9, 10, 3)
	serve(g.Handler(ok)) // takes as much again
	g.refund(t)
	g.left(t, 9, 7, 3) // of the first only what it still had
	g.refund(t)
	g.refund(t, "p", "b")
	g.left(t, 9, 7, 3)

	g = newGiving(t)
	g.banned(t)
	g.refund(t)
	g.left(t, 10, 10, 0)
}

// A Decision by Check is as good as one by Allow.
func TestRefundOfCheck(t *testing.T) {
	g := newGiving(t)
	var err error
	if g.d, err = g.Check(httptest.NewRequest("GET", "/", nil)); err != nil {
		t.Fatal(err)
	}
	g.left(t, 8, 4, 3)
	g.refund(t)
	g.left(t, 9, 7, 3)
}

func TestRefundMistakes(t *testing.T) {
	g, other := newGiving(t), newGiving(t)
	for name, f := range map[string]func(context.Context, middleware.Decision, ...string) error{"Refund": g.Refund, "Forget": g.Forget} {
		var mistake *middleware.FieldError
		err := f(t.Context(), g.d, "p", "nobody's", "b")
		if !errors.As(err, &mistake) || mistake.Field != "policies" || mistake.Value != "nobody's" || mistake.Reason != "is the name of no policy in the Config" {
			t.Errorf("%s: %v", name, err)
		}
		if err := f(t.Context(), other.d); err == nil || errors.As(err, &mistake) {
			t.Errorf("%s of another's: %v", name, err)
		}
		for _, nothing := range []middleware.Decision{{}, {Refused: -1}} {
			if err := f(t.Context(), nothing); err != nil {
				t.Errorf("%s of nothing: %v", name, err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := f(gone, g.d); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that is done: %v", name, err)
		}
		g.left(t, 9, 7, 3)
		other.left(t, 9, 7, 3)
	}
	var none *middleware.Middleware
	for name, f := range map[string]func(context.Context, middleware.Decision, ...string) error{"Refund": none.Refund, "Forget": none.Forget} {
		for _, d := range []middleware.Decision{g.d, {}} { // a mistake, whatever there is to do
			if err := f(t.Context(), d); err == nil || !strings.Contains(err.Error(), "the Middleware is nil") {
				t.Errorf("%s by nil: %v", name, err)
			}
		}
	}
	none.Settle(g.request, 500)
	g.refund(t) // none of these took it away
	g.left(t, 10, 10, 3)
}

// The names are those of all policies, also of those that this request was not
// charged under.
func TestRefundKnowsAllPolicies(t *testing.T) {
	free, paid := policyOf(t, "free", algorithms.SlidingLog{}, algorithms.PerHour(10)), policyOf(t, "paid", algorithms.SlidingLog{}, algorithms.PerHour(10))
	g := newGiving(t, func(c *middleware.Config) {
		c.Rules = append(c.Rules, middleware.Rule{
			PolicyOf: func(*http.Request) *algorithms.Policy { return paid }, Policies: []*algorithms.Policy{free, paid}, Key: keyfunc.Const("k"),
		})
	})
	g.policies = []*algorithms.Policy{free, paid}
	g.refund(t, "free")
	g.forget(t, "free")
	g.left(t, 10, 9)
	g.refund(t, "paid")
	g.left(t, 10, 10)
}

// What a handler gives back, Rule.Refund does not give back again.
func TestRefundOnce(t *testing.T) {
	for name, give := range map[string]func(*giving, context.Context, middleware.Decision) error{
		"Refund": func(g *giving, ctx context.Context, d middleware.Decision) error { return g.Refund(ctx, d) },
		"Forget": func(g *giving, ctx context.Context, d middleware.Decision) error { return g.Forget(ctx, d, "p") },
	} {
		g := newGiving(t, func(c *middleware.Config) { c.Rules[0].Refund = always })
		serve(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			d, _ := middleware.FromContext(r.Context())
			if err := give(g, r.Context(), d); err != nil {
				t.Error(err)
			}
			// Others take the room.
			if _, err := store.Take(r.Context(), g.store, g.policies[0], "k", 5); err != nil {
				t.Error(err)
			}
		})))
		want := int64(4)
		if name == "Forget" { // that of the first request too
			want = 5
		}
		if got := left(t, g.store, g.policies[0]); got != want {
			t.Errorf("%s: %d remain, want %d", name, got, want)
		}
	}
}

// However many ask at the same time, it is given back once.
func TestRefundAtOnce(t *testing.T) {
	g := newGiving(t, func(c *middleware.Config) { c.Rules[0].Refund, c.Rules[1].Refund = always, always })
	for range 2 {
		serve(g.Handler(ok), func(r *http.Request) { *r = *r.WithContext(context.Background()) })
	}
	for _, p := range g.policies[:2] { // room for what must not be given back
		if _, err := store.Take(t.Context(), g.store, p, "k", 6); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { g.refund(t) })
		wg.Go(func() { g.refund(t, "b") })
		wg.Go(func() { g.Settle(g.request, 500) })
	}
	wg.Wait()
	g.left(t, 4, 4, 3)
}

// An error leaves it open whether something was given back, so that it is not tried
// again; but not that of a context that was done before.
func TestRefundErrors(t *testing.T) {
	fail := true
	g := newGiving(t, func(c *middleware.Config) {
		c.Rules[0].Refund = always
		c.Store = watched{c.Store, func(_ context.Context, charges []store.Charge) error {
			if fail && (givesBack(charges) || charges[0].Mode == store.Forget) {
				return errAway
			}
			return nil
		}}
	})
	if err := g.Refund(t.Context(), g.d, "b"); !errors.Is(err, errAway) {
		t.Errorf("Refund: %v", err)
	}
	if err := g.Forget(t.Context(), g.d, "b"); !errors.Is(err, errAway) {
		t.Errorf("Forget: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{"Refund": g.Refund(gone, g.d), "Forget": g.Forget(gone, g.d)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	fail = false
	g.refund(t, "b")
	g.left(t, 9, 7, 3)
	g.Settle(g.request, 500)
	g.left(t, 10, 7, 3)
	g.forget(t, "b")
	g.left(t, 10, 10, 3)
}

// The deadline is the caller's.
func TestRefundWaitsForContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGiving(t, func(c *middleware.Config) {
			c.Store = watched{c.Store, func(ctx context.Context, charges []store.Charge) error {
				if givesBack(charges) {
					<-ctx.Done()
				}
				return ctx.Err()
			}}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if err := g.Refund(ctx, g.d); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
