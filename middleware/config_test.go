package middleware_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// picky is a store that can't charge what it is asked to.
type picky struct{ store.Store }

func (picky) Validate(...*algorithms.Policy) error {
	return fmt.Errorf("one policy at a time: %w", errors.ErrUnsupported)
}

func TestNewReportsAllMistakes(t *testing.T) {
	good := policy(t, "good", algorithms.PerMinute(1))
	key := keyfunc.Const("k")
	var none *memstore.Store
	rules := []middleware.Rule{{Policy: good, Key: key}}
	for name, c := range map[string]struct {
		config middleware.Config
		fields []string
	}{
		"nothing":      {middleware.Config{}, []string{"Store", "Rules"}},
		"nil store":    {middleware.Config{Store: none, Rules: []middleware.Rule{{Policy: good, Key: key}}}, []string{"Store"}},
		"empty rules":  {middleware.Config{Store: memstore.New(memstore.Config{}), Rules: make([]middleware.Rule, 2)}, []string{"Rules[0].Policy", "Rules[0].Key", "Rules[1].Policy", "Rules[1].Key"}},
		"same policy":  {middleware.Config{Store: memstore.New(memstore.Config{}), Rules: []middleware.Rule{{Policy: good, Key: key}, {Policy: good, Key: key}}}, []string{"Rules[1].Policy"}},
		"same name":    {middleware.Config{Store: memstore.New(memstore.Config{}), Rules: []middleware.Rule{{Policy: good, Key: key}, {Policy: policy(t, "good", algorithms.PerHour(1)), Key: key}}}, []string{"Rules[1].Policy"}},
		"store's own":  {middleware.Config{Store: memstore.New(memstore.Config{MaxKeys: -1}), Rules: []middleware.Rule{{Policy: good}}}, []string{"memstore.Config.MaxKeys", "Rules[0].Key"}},
		"no policy":    {middleware.Config{Store: memstore.New(memstore.Config{MaxKeys: -1}), Rules: make([]middleware.Rule, 1)}, []string{"memstore.Config.MaxKeys", "Rules[0].Policy", "Rules[0].Key"}},
		"no NewPolicy": {middleware.Config{Store: memstore.New(memstore.Config{}), Rules: []middleware.Rule{{Policy: &algorithms.Policy{}, Key: key}}}, []string{"Rules[0].Policy"}},
		"zero store":   {middleware.Config{Store: &memstore.Store{}, Rules: []middleware.Rule{{Policy: good, Key: key}}}, []string{"memstore.Store"}},
		"ban's name":   {middleware.Config{Store: memstore.New(memstore.Config{}), Rules: rules, Ban: good}, []string{"Ban"}},
		"ban's making": {middleware.Config{Store: memstore.New(memstore.Config{}), Rules: rules, Ban: &algorithms.Policy{}, BanKey: key}, []string{"Ban"}},
		"no ban":       {middleware.Config{Rules: []middleware.Rule{{Policy: good, Pace: true, Shadow: true}}, BanKey: key}, []string{"Store", "Rules[0].Key", "Rules[0].Pace", "Ban"}},
		"store can't":  {middleware.Config{Store: picky{}, Rules: []middleware.Rule{{Policy: good, Key: key}}}, nil},
		"all of those": {middleware.Config{Rules: []middleware.Rule{{}, {Policy: good}, {Policy: good, Key: key}}}, []string{"Store", "Rules[0].Policy", "Rules[0].Key", "Rules[1].Key", "Rules[2].Policy"}},
	} {
		m, err := middleware.New(c.config)
		if m != nil || err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		fields := map[string]bool{}
		for _, e := range leaves(err) {
			var mistake *middleware.FieldError
			if errors.As(e, &mistake) {
				fields[mistake.Field] = true
				if mistake.Reason == "" || !strings.Contains(e.Error(), mistake.Field) {
					t.Errorf("%s: %q says too little", name, e)
				}
			}
		}
		for _, f := range c.fields {
			if !fields[f] {
				t.Errorf("%s: %s is not in %q", name, f, err)
			}
		}
		if len(fields) != len(c.fields) {
			t.Errorf("%s: %v, want %v", name, fields, c.fields)
		}
		if name == "store can't" && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// leaves are the errors that a tree of joined ones holds.
func leaves(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, leaves(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return append(leaves(e.Unwrap()), err)
	}
	return []error{err}
}

// What is changed in a Config after New changes nothing.
func TestConfigIsCopied(t *testing.T) {
	rules := []middleware.Rule{{Policy: policy(t, "p", algorithms.PerMinute(1)), Key: keyfunc.Const("k")}}
	m := newMiddleware(t, middleware.Config{Store: memstore.New(memstore.Config{}), Rules: rules})
	rules[0] = middleware.Rule{}
	if w := serve(m.Handler(ok)); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

// What a queue has let in keeps its place: nothing of it is given back.
func TestPaceWithRefund(t *testing.T) {
	_, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}),
		Rules: []middleware.Rule{{
			Policy: policy(t, "p", algorithms.PerMinute(5)), Key: keyfunc.Const("k"), Pace: true,
			Refund: func(int) bool { return true },
		}},
	})
	wantMistakes(t, "Pace and Refund", err, []mistake{{"Rules[0].Pace", true, "can't be set with Refund"}})

	s, p := memstore.New(memstore.Config{}), policy(t, "p", algorithms.PerHour(5))
	m := newMiddleware(t, middleware.Config{Store: s, Rules: []middleware.Rule{{Policy: p, Key: keyfunc.Const("k"), Pace: true}}})
	d, err := m.Check(httptest.NewRequest("GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Refund(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if look, err := store.Take(t.Context(), s, p, "k", 0); err != nil || look.Remaining != 4 {
		t.Errorf("%+v, %v; want 4 left", look, err)
	}
}

// A rule can hold only by a queue, and only what it decides.
func TestPaceMistakes(t *testing.T) {
	ban, err := algorithms.Ban{Strikes: 1, Within: time.Second, For: time.Second}.Policy("p")
	if err != nil {
		t.Fatal(err)
	}
	minute := algorithms.PerMinute(5)
	for _, c := range []struct {
		policy  *algorithms.Policy
		shadow  bool
		reasons []string
	}{
		{policyOf(t, "p", algorithms.FixedWindow{}, minute), false, []string{"fixed-window"}},
		{policyOf(t, "p", algorithms.SlidingCounter{}, minute), false, []string{"sliding-counter"}},
		{policyOf(t, "p", algorithms.SlidingLog{}, minute), true, []string{"Shadow", "sliding-log"}},
		{policyOf(t, "p", algorithms.LeakyBucket{Stepped: true}, minute), false, []string{"LeakyBucket{}, without Stepped"}},
		{policyOf(t, "p", algorithms.TokenBucket{Stepped: true}, minute), false, []string{"token-bucket"}},
		{ban, false, []string{"ban"}},
		{policy(t, "p", minute), true, []string{"Shadow"}},
		{policy(t, "p", minute), false, nil},
		{policyOf(t, "p", algorithms.LeakyBucket{}, minute), false, nil},
		{policyOf(t, "p", algorithms.TokenBucket{}, minute), false, nil},
	} {
		_, err := middleware.New(middleware.Config{
			Store: memstore.New(memstore.Config{}),
			Rules: []middleware.Rule{{Policy: c.policy, Key: keyfunc.Const("k"), Pace: true, Shadow: c.shadow}},
		})
		var got []*middleware.FieldError
		for _, leaf := range leaves(err) {
			if mistake, ok := leaf.(*middleware.FieldError); ok {
				got = append(got, mistake)
			}
		}
		if len(got) != len(c.reasons) {
			t.Errorf("%s, shadow %t: %v", c.policy.ID(), c.shadow, err)
			continue
		}
		for i, mistake := range got {
			if mistake.Field != "Rules[0].Pace" || !strings.Contains(mistake.Reason, c.reasons[i]) {
				t.Errorf("%s: %v", c.policy.ID(), mistake)
			}
		}
	}
}
