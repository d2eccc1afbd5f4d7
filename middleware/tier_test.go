package middleware_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// onPlan asks as a customer on a plan.
func onPlan(plan, who string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-Plan", plan); r.Header.Set("X-User", who) }
}

func TestPolicyOf(t *testing.T) {
	free, paid := policy(t, "free", algorithms.PerHour(1)), policy(t, "paid", algorithms.PerHour(3))
	stranger := policy(t, "stranger", algorithms.PerHour(9))
	asked := 0
	s := &seen{Store: memstore.New(memstore.Config{})}
	m := newMiddleware(t, middleware.Config{
		Store: s,
		Rules: []middleware.Rule{{
			PolicyOf: func(r *http.Request) *algorithms.Policy {
				switch r.Header.Get("X-Plan") {
				case "free":
					return free
				case "paid":
					return paid
				case "wrong":
					return stranger
				}
				return nil // unlimited
			},
			Policies: []*algorithms.Policy{free, paid},
			Key: func(r *http.Request) (string, error) {
				asked++
				return keyfunc.Header("X-User")(r)
			},
		}},
		Failed: func(w http.ResponseWriter, _ *http.Request, err error) {
			var mistake *middleware.FieldError
			if errors.As(err, &mistake) && mistake.Field == "PolicyOf" && mistake.Value == "stranger" {
				w.WriteHeader(http.StatusTeapot)
			}
		},
	})
	for i, tt := range []struct {
		plan, who string
		status    int
		limit     string
	}{
		{"free", "a", 200, "1"},
		{"free", "a", 429, "1"},
		{"free", "b", 200, "1"},
		{"paid", "a", 200, "3"}, // counted apart
		{"paid", "a", 200, "3"},
		{"paid", "a", 200, "3"},
		{"paid", "a", 429, "3"},
		{"", "a", 200, ""},
		{"", "", 200, ""}, // its key is not asked for
		{"wrong", "a", 418, ""},
	} {
		before := asked
		w := serve(m.Handler(ok), onPlan(tt.plan, tt.who))
		if w.Code != tt.status || w.Header().Get("X-RateLimit-Limit") != tt.limit {
			t.Errorf("request %d: %d, limit %q; want %d, %q", i, w.Code, w.Header().Get("X-RateLimit-Limit"), tt.status, tt.limit)
		}
		if limited := tt.limit != ""; asked > before != limited {
			t.Errorf("request %d: key asked: %t", i, asked > before)
		}
	}
	if len(s.charges) != 7 {
		t.Errorf("the store was asked %d times", len(s.charges))
	}
}

// couples is a store that can't charge policies of these names together.
type couples struct {
	store.Store
	never [2]string
	asked [][]string
}

func (c *couples) Validate(policies ...*algorithms.Policy) error {
	names := map[string]bool{}
	var list []string
	for _, p := range policies {
		names[p.Name()] = true
		list = append(list, p.Name())
	}
	c.asked = append(c.asked, list)
	if names[c.never[0]] && names[c.never[1]] {
		return errors.New("not together")
	}
	return c.Store.Validate(policies...)
}

// A store is asked about what can happen: of the policies of one rule a request
// has one.
func TestPoliciesAreValidatedTogether(t *testing.T) {
	a, b, c, d := policy(t, "a", algorithms.PerHour(1)), policy(t, "b", algorithms.PerHour(1)), policy(t, "c", algorithms.PerHour(1)), policy(t, "d", algorithms.PerHour(1))
	none := func(*http.Request) *algorithms.Policy { return nil }
	config := func(s store.Store) middleware.Config {
		return middleware.Config{Store: s, Rules: []middleware.Rule{
			{PolicyOf: none, Policies: []*algorithms.Policy{a, b, c}, Key: keyfunc.Const("k")},
			{Policy: d, Key: keyfunc.Const("k")},
		}}
	}
	s := &couples{Store: memstore.New(memstore.Config{}), never: [2]string{"a", "b"}}
	if _, err := middleware.New(config(s)); err != nil || len(s.asked) != 3 {
		t.Errorf("%v; asked about %q", err, s.asked)
	}
	s.never = [2]string{"c", "d"}
	if _, err := middleware.New(config(s)); err == nil {
		t.Error("c and d can't be charged together, and New says nothing")
	}
}

func TestPolicyOfMistakes(t *testing.T) {
	p, other := policy(t, "p", algorithms.PerHour(1)), policy(t, "p", algorithms.PerHour(2))
	of := func(*http.Request) *algorithms.Policy { return p }
	key := keyfunc.Const("k")
	for name, c := range map[string]struct {
		rule   middleware.Rule
		fields []string
	}{
		"both":          {middleware.Rule{Policy: p, PolicyOf: of, Policies: []*algorithms.Policy{p}, Key: key}, []string{"Rules[0].Policy"}},
		"no list":       {middleware.Rule{PolicyOf: of, Key: key}, []string{"Rules[0].Policies"}},
		"no function":   {middleware.Rule{Policies: []*algorithms.Policy{p}, Key: key}, []string{"Rules[0].PolicyOf", "Rules[0].Policy"}},
		"nil in list":   {middleware.Rule{PolicyOf: of, Policies: []*algorithms.Policy{p, nil}, Key: key}, []string{"Rules[0].Policies[1]"}},
		"two of a name": {middleware.Rule{PolicyOf: of, Policies: []*algorithms.Policy{p, other}, Key: key}, []string{"Rules[0].Policies[1]"}},
		"not made":      {middleware.Rule{PolicyOf: of, Policies: []*algorithms.Policy{{}}, Key: key}, []string{"Rules[0].Policies[0]"}},
		"no queue":      {middleware.Rule{PolicyOf: of, Policies: []*algorithms.Policy{policyOf(t, "w", algorithms.FixedWindow{}, algorithms.PerHour(1)), p}, Key: key, Pace: true}, []string{"Rules[0].Pace"}},
		"a bad key":     {middleware.Rule{Policy: p, Key: keyfunc.Join(keyfunc.Const(""), nil)}, []string{"Rules[0].Key: keyfunc.Const: key", "Rules[0].Key: keyfunc.Join: parts[1]"}},
		"a unit":        {middleware.Rule{Policy: p, Key: key, Unit: "bananas"}, []string{"Rules[0].Unit"}},
	} {
		_, err := middleware.New(middleware.Config{Store: memstore.New(memstore.Config{}), Rules: []middleware.Rule{c.rule}})
		var got []string
		for _, leaf := range leaves(err) {
			var mistake *middleware.FieldError
			if errors.As(leaf, &mistake) {
				got = append(got, mistake.Field)
			}
		}
		if len(got) != len(c.fields) {
			t.Errorf("%s: %q, want %q", name, got, c.fields)
			continue
		}
		for i := range got {
			if got[i] != c.fields[i] {
				t.Errorf("%s: %q, want %q", name, got, c.fields)
				break
			}
		}
	}
}
