package algorithms

import (
	"errors"
	"reflect"
)

// Policy is a named Limit with the Algorithm that counts it. It is immutable
// and safe for concurrent use; share it by pointer.
//
// A key's state belongs to the policy's name and its algorithm's, not to the
// limit: a new Policy with the same names and another limit goes on counting
// where the old one stopped.
type Policy struct {
	name      string
	id        string
	algorithm Algorithm
	limit     Limit
	params    []int64
}

// MaxName is the most bytes that the name of a policy or an algorithm may have.
const MaxName = 64

// NewPolicy names a limit and says how it is counted. The name stands in stored
// keys, in logs, metrics and in answers to clients: 1 to [MaxName] ASCII
// letters, digits, '-', '_' and '.'. The error is one or more *[FieldError],
// joined.
func NewPolicy(name string, a Algorithm, l Limit) (*Policy, error) {
	var errs []error
	if !validName(name) {
		errs = append(errs, &FieldError{"Policy.Name", name, "must be 1 to 64 ASCII letters, digits, '-', '_' or '.'"})
	}
	p := &Policy{name: name, algorithm: a, limit: l}
	if isNil(a) {
		errs = append(errs, &FieldError{"Policy.Algorithm", nil, "is missing; GCRA{} serves most"})
		return nil, errors.Join(append(errs, l.check())...)
	}
	if !validName(a.Name()) {
		errs = append(errs, &FieldError{"Policy.Algorithm.Name", a.Name(), "must be 1 to 64 ASCII letters, digits, '-', '_' or '.'"})
	}
	params, err := a.Params(l)
	if err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	p.params = params
	p.id = name + ":" + a.Name()
	return p, nil
}

// Name is the policy's name.
func (p *Policy) Name() string { return p.name }

// ID is "name:algorithm": two policies with the same ID share the state of a
// key.
func (p *Policy) ID() string { return p.id }

// Algorithm is what counts.
func (p *Policy) Algorithm() Algorithm { return p.algorithm }

// Limit is what NewPolicy was given.
func (p *Policy) Limit() Limit { return p.limit }

// Params are the limit's numbers as Algorithm.Decide takes them. The slice is
// the policy's own: do not change it.
func (p *Policy) Params() []int64 { return p.params }

// Decide is Algorithm.Decide with the policy's own numbers.
func (p *Policy) Decide(dst, s State, now, cost, age int64) (State, Result) {
	return p.algorithm.Decide(dst, s, now, p.params, cost, age)
}

// isNil also finds the nil pointer that an interface may hold.
func isNil(a Algorithm) bool {
	if a == nil {
		return true
	}
	v := reflect.ValueOf(a)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func validName(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
