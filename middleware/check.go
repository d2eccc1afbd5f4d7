package middleware

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// checker gathers all that is wrong with a Config.
type checker struct {
	errs  []error
	names map[string]string // of policies, to where each stands
}

func (c *checker) bad(field string, value any, reason string) {
	c.errs = append(c.errs, &FieldError{Field: field, Value: value, Reason: reason})
}

func (c *Config) check() error {
	ck := &checker{names: map[string]string{}}
	noStore := isNil(c.Store)
	if noStore {
		ck.bad("Store", nil, "is missing; memstore.New(memstore.Config{}) keeps counts in memory")
	}
	if len(c.Rules) == 0 {
		ck.bad("Rules", c.Rules, "must have at least one rule; to limit nothing, leave the middleware out")
	}
	groups := make([][]*algorithms.Policy, 0, len(c.Rules)+1) // what each rule may charge
	for i := range c.Rules {
		groups = append(groups, ck.rule(fmt.Sprintf("Rules[%d].", i), &c.Rules[i], c.Store))
	}
	ck.key("BanKey", c.BanKey)
	if c.Ban != nil {
		if ck.policy("Ban", c.Ban) {
			groups = append(groups, []*algorithms.Policy{c.Ban})
		}
	} else if c.BanKey != nil {
		ck.bad("Ban", nil, "is missing, and BanKey is set; algorithms.Ban{…}.Policy makes one")
	}
	c.Headers.check(ck)
	if !noStore {
		ck.together(c.Store, groups)
	}
	return errors.Join(ck.errs...)
}

// rule reports mistakes in one rule, whose fields begin with prefix. It gives the
// policies that are none.
func (c *checker) rule(prefix string, rule *Rule, s store.Store) (usable []*algorithms.Policy) {
	if rule.Key == nil {
		c.bad(prefix+"Key", nil, "is missing; keyfunc.IP(keyfunc.Trust{}) limits each address, keyfunc.Const all together")
	}
	c.key(prefix+"Key", rule.Key)
	if !slices.Contains([]string{"", "requests", "content-bytes", "concurrent-requests"}, rule.Unit) {
		c.bad(prefix+"Unit", rule.Unit, `must be "requests", "content-bytes" or "concurrent-requests"`)
	}
	if rule.PolicyOf == nil {
		if len(rule.Policies) > 0 {
			c.bad(prefix+"PolicyOf", nil, "is missing, and Policies is set; it chooses one of them for a request")
		}
		if c.policy(prefix+"Policy", rule.Policy) {
			usable = append(usable, rule.Policy)
		}
	} else {
		if rule.Policy != nil {
			c.bad(prefix+"Policy", rule.Policy.Name(), "can't be set with PolicyOf; put it into Policies, and let PolicyOf return it")
		}
		if len(rule.Policies) == 0 {
			c.bad(prefix+"Policies", rule.Policies, "is missing; it lists all that PolicyOf may return")
		}
		for i, p := range rule.Policies {
			if c.policy(fmt.Sprintf("%sPolicies[%d]", prefix, i), p) {
				usable = append(usable, p)
			}
		}
	}
	rule.checkPace(s, func(value any, reason string) { c.bad(prefix+"Pace", value, reason) })
	return usable
}

// policy reports what is wrong with p, which stands in field.
func (c *checker) policy(field string, p *algorithms.Policy) bool {
	switch {
	case p == nil:
		c.bad(field, nil, "is missing; algorithms.NewPolicy makes one, and gives nil with an error")
		return false
	case p.Algorithm() == nil:
		c.bad(field, "", "was not made by algorithms.NewPolicy")
		return false
	}
	if first, ok := c.names[p.Name()]; ok {
		c.bad(field, p.Name(), fmt.Sprintf("has the name of %s; each policy needs a name of its own", first))
		return false
	}
	c.names[p.Name()] = field
	return true
}

// key reports what key was made wrongly with.
func (c *checker) key(field string, key keyfunc.Func) {
	if key == nil {
		return
	}
	for _, err := range joined(keyfunc.Validate(key)) {
		if e := (*FieldError)(nil); errors.As(err, &e) {
			c.bad(field+": "+e.Field, e.Value, e.Reason)
		}
	}
}

// together asks the store whether it can charge one policy of each group at once,
// in as many combinations as it takes to have each policy in one.
func (c *checker) together(s store.Store, groups [][]*algorithms.Policy) {
	said := map[string]bool{}
	for i, more := 0, true; more; i++ {
		more = false
		var policies []*algorithms.Policy
		for _, group := range groups {
			if len(group) > 0 {
				policies = append(policies, group[min(i, len(group)-1)])
				more = more || i+1 < len(group)
			}
		}
		for _, err := range joined(s.Validate(policies...)) {
			if !said[err.Error()] {
				said[err.Error()] = true
				c.errs = append(c.errs, fmt.Errorf("middleware.Config.Store: %w", err))
			}
		}
	}
}

// joined is the errors that err joins, at any depth. One that says more than they
// do stays whole.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	list, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(list.Unwrap()...).Error() {
		return []error{err}
	}
	var all []error
	for _, err := range list.Unwrap() {
		all = append(all, joined(err)...)
	}
	return all
}

// isNil also finds the nil pointer that an interface may hold.
func isNil(s store.Store) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
