package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// What a decision costs under each algorithm, on one key that is at its limit:
// each charge that is let in takes what has just become free, and each that is
// refused comes at the same moment.
func BenchmarkAlgorithms(b *testing.B) {
	for _, a := range []algorithms.Algorithm{algorithms.GCRA{}, algorithms.FixedWindow{}, algorithms.SlidingCounter{}} {
		benchmarkAtLimit(b, a.Name(), a, 1000)
	}
	for _, n := range []int64{10, 100, 1000, algorithms.MaxLog} {
		benchmarkAtLimit(b, fmt.Sprintf("sliding-log of %d", n), algorithms.SlidingLog{}, n)
	}
}

func benchmarkAtLimit(b *testing.B, name string, a algorithms.Algorithm, n int64) {
	p, err := algorithms.NewPolicy("p", a, algorithms.Limit{Count: n, Period: time.Duration(n) * time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	s := memstore.New(memstore.Config{Clock: func() time.Time { return now }})
	ctx := context.Background()
	for range 2 * n { // a log of that many moments
		now = now.Add(time.Millisecond)
		_, _ = store.Take(ctx, s, p, "203.0.113.7", 1)
	}
	b.Run(name+"/allowed", func(b *testing.B) {
		for b.Loop() {
			now = now.Add(time.Millisecond)
			_, _ = store.Take(ctx, s, p, "203.0.113.7", 1)
		}
	})
	_, _ = store.Take(ctx, s, p, "203.0.113.7", n)
	b.Run(name+"/refused", func(b *testing.B) {
		for b.Loop() {
			_, _ = store.Take(ctx, s, p, "203.0.113.7", n)
		}
	})
}
