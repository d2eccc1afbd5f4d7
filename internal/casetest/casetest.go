// Package casetest replays what others have seen: the answers of the real
// redis-cell, and field reports of rate limiters that went wrong. Each store's
// tests call it with that store.
package casetest

import (
	"context"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// Open gives a store without keys that reads its time from clock.
type Open = func(t *testing.T, clock *storetest.Clock) store.Store

// take makes one charge and fails the test on an error.
func take(t *testing.T, s store.Store, p *algorithms.Policy, key string, cost int64) algorithms.Result {
	t.Helper()
	r, err := store.Take(context.Background(), s, p, key, cost)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func policy(t *testing.T, name string, a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
