package middleware_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

func TestForget(t *testing.T) {
	g := newGiving(t)
	for range 2 {
		serve(g.Handler(ok))
	}
	g.banned(t)
	g.left(t, 7, 1, 0)
	g.forget(t, "ban")
	g.left(t, 7, 1, 3)
	g.forget(t, "b")
	g.left(t, 7, 10, 3)
	serve(g.Handler(ok))
	g.refund(t)
	g.left(t, 7, 7, 3) // p has its own back, of b there was nothing left
	g.banned(t)
	g.forget(t)
	g.left(t, 10, 10, 3)
	if n := g.store.(*memstore.Store).Len(); n != 0 {
		t.Errorf("%d keys, want none", n)
	}
	serve(g.Handler(ok))
	g.refund(t)
	g.left(t, 9, 7, 3)
	g.forget(t) // as often as it is asked for
	g.left(t, 10, 10, 3)
}

// A rule on trial is forgotten like others, one that was left out is not, and one
// key is forgotten, not all.
func TestForgetWhatWasCharged(t *testing.T) {
	var groups [][]store.Charge
	g := newGiving(t, func(c *middleware.Config) {
		c.Rules[0].Shadow = true
		c.Rules = slices.Insert(c.Rules, 0, middleware.Rule{Policy: policy(t, "out", algorithms.PerHour(1)), Key: leftOut})
		c.BanKey = leftOut
		c.Store = watched{c.Store, func(_ context.Context, charges []store.Charge) error {
			groups = append(groups, slices.Clone(charges))
			return nil
		}}
	})
	groups = nil
	g.forget(t, "out", "ban")
	if len(groups) != 0 {
		t.Errorf("the store was asked for %+v", groups)
	}
	g.forget(t)
	want := []store.Charge{{Policy: g.policies[0], Key: "k", Mode: store.Forget}, {Policy: g.policies[1], Key: "k", Mode: store.Forget}}
	if len(groups) != 1 || !slices.Equal(groups[0], want) {
		t.Errorf("the store was asked for %+v", groups)
	}
}

// A refusal can be forgiven from where it is answered.
func TestForgetTheBan(t *testing.T) {
	var m *middleware.Middleware
	c, p := refunding(t, nil)
	c.Ban = threeStrikes(t)
	c.Denied = func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
		if r.Header.Get("X-Solved") != "" {
			if err := m.Forget(r.Context(), d, "ban"); err != nil {
				t.Error(err)
			}
		}
		middleware.DefaultDenied(w, r, d)
	}
	m = newMiddleware(t, c)
	policies := []*algorithms.Policy{p, c.Ban}
	for range 14 {
		serve(m.Handler(ok))
	}
	wantLeft(t, c.Store, policies, 0, 0)
	serve(m.Handler(ok), func(r *http.Request) { r.Header.Set("X-Solved", "1") })
	wantLeft(t, c.Store, policies, 0, 3)
}
