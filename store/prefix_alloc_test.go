//go:build !race

// With the race detector sync.Pool drops items on purpose.
package store_test

import (
	"context"
	"testing"

	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

func TestPrefixAllocations(t *testing.T) {
	p := policy(t, "p")
	s := store.Prefix(memstore.New(memstore.Config{}), "app")
	ctx := context.Background()
	if n := testing.AllocsPerRun(200, func() { _, _ = store.Take(ctx, s, p, "k", 1) }); n > 1 {
		t.Errorf("%v allocations a decision, want the longer key alone", n)
	}
}
