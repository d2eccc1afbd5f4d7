package store

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Prefix is s with a prefix before all keys, so that programs, tenants or
// versions that use the same policies and keys can share one store and never
// meet.
//
// The key "k" under the prefix "a" is the key "a:k" of s. In the prefix `\`
// becomes `\\` and ":" becomes `\:`, so that no key under one prefix is a key
// under another, whatever both contain. Prefixes nest like directories: "b"
// around "a" divides the space of "a", in which the same keys can also be
// written out. A part of a program that is to stay apart from others must not
// share a store with one that has no prefix.
//
// A mistake, no store or an empty prefix, is reported by Validate, and so by
// middleware.New, and by every Take.
func Prefix(s Store, prefix string) Store {
	p := &prefixed{store: s, head: prefixEscaper.Replace(prefix) + ":"}
	switch {
	case isNil(s):
		p.wrong = &algorithms.FieldError{Field: "store.Prefix.s", Reason: "is missing"}
	case prefix == "":
		p.wrong = &algorithms.FieldError{Field: "store.Prefix.prefix", Value: "", Reason: "must not be empty; without a prefix, use the store itself"}
	}
	return p
}

var prefixEscaper = strings.NewReplacer(`\`, `\\`, ":", `\:`)

// prefixed is what [Prefix] makes.
type prefixed struct {
	store Store
	head  string // the escaped prefix and its end
	wrong error  // what is wrong with the arguments
}

// Validate asks the store.
func (p *prefixed) Validate(policies ...*algorithms.Policy) error {
	if isNil(p.store) {
		return p.wrong
	}
	return errors.Join(p.wrong, p.store.Validate(policies...))
}

// Resolution is the store's.
func (p *prefixed) Resolution() time.Duration { return Resolution(p.store) }

// Take has the store decide the same group under longer keys.
func (p *prefixed) Take(ctx context.Context, charges []Charge, results []algorithms.Result) error {
	// Here too: with the prefix, an empty key would be one like any other.
	if err := Check(ctx, charges, results); err != nil {
		return err
	}
	if p.wrong != nil {
		return p.wrong
	}
	group := groups.Get().(*[]Charge)
	*group = append((*group)[:0], charges...) // the caller's slice stays as it is
	for i := range *group {
		(*group)[i].Key = p.head + (*group)[i].Key
	}
	err := p.store.Take(ctx, *group, results)
	clear(*group) // the pool must not hold on to keys
	groups.Put(group)
	return err
}

var groups = sync.Pool{New: func() any { return new([]Charge) }}

// isNil also finds the nil pointer that an interface may hold.
func isNil(s Store) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
