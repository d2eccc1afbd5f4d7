//go:build !race

// With the race detector sync.Pool drops items on purpose.

package memstore_test

import (
	"context"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

func TestTakeAllocatesNothing(t *testing.T) {
	s := memstore.New(memstore.Config{})
	p := policy(t, "p", algorithms.PerSecond(1_000_000))
	refusing := policy(t, "q", algorithms.PerDay(1))
	group := []store.Charge{{Policy: p, Key: "a", Cost: 1}, {Policy: p, Key: "b", Cost: 1}, {Policy: p, Key: "c", Cost: 1, Mode: store.Shadow}}
	forget := []store.Charge{{Policy: p, Key: "d", Mode: store.Forget}, {Policy: p, Key: "never seen", Mode: store.Forget}, {Policy: p, Key: "e", Cost: 1}}
	results := make([]algorithms.Result, len(group))
	for name, f := range map[string]func(){
		"one":     func() { take(t, s, p, "203.0.113.7", 1) },
		"refused": func() { take(t, s, refusing, "203.0.113.7", 1) },
		"look":    func() { take(t, s, p, "203.0.113.7", 0) },
		"forget": func() {
			take(t, s, p, "d", 1)
			if err := s.Take(context.Background(), forget, results); err != nil {
				t.Fatal(err)
			}
		},
		"group": func() {
			if err := s.Take(context.Background(), group, results); err != nil {
				t.Fatal(err)
			}
		},
	} {
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
