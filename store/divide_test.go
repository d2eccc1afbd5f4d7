package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// limits is a store that keeps the policies it is asked about.
type limits struct {
	store.Store
	asked []*algorithms.Policy
}

func (l *limits) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	for _, c := range charges {
		l.asked = append(l.asked, c.Policy)
	}
	return l.Store.Take(ctx, charges, results)
}

func TestDivide(t *testing.T) {
	ban := algorithms.Ban{Strikes: 3, Within: time.Minute, For: time.Hour}
	for _, tt := range []struct {
		algorithm algorithms.Algorithm
		limit     algorithms.Limit
		n         int
		want      string
	}{
		{algorithms.GCRA{}, algorithms.PerMinute(100), 4, "25/1m"},
		{algorithms.GCRA{}, algorithms.PerMinute(100).WithBurst(10), 4, "25/1m burst 2"},
		{algorithms.GCRA{}, algorithms.PerMinute(100).WithBurst(3), 4, "25/1m burst 1"},
		{algorithms.GCRA{}, algorithms.PerMinute(10), 4, "2/1m"},
		{algorithms.GCRA{}, algorithms.PerMinute(4), 4, "1/1m"},
		{algorithms.GCRA{}, algorithms.PerMinute(3), 4, "1/2m"},
		{algorithms.GCRA{}, algorithms.PerMinute(1), 4, "1/4m"},
		{algorithms.FixedWindow{}, algorithms.PerMinute(1), 20, "1/20m"},
		{algorithms.SlidingLog{}, algorithms.PerHour(10), 1, "10/1h"},
		{ban, algorithms.Limit{Count: 3, Period: time.Minute}, 4, "3/1m"}, // takes no other
	} {
		inner := &limits{Store: memstore.New(memstore.Config{})}
		s := store.Divide(inner, tt.n)
		p, err := algorithms.NewPolicy("p", tt.algorithm, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := store.Take(context.Background(), s, p, "k", 1); err != nil {
				t.Fatal(err)
			}
		}
		if got := inner.asked[0]; got.Limit().String() != tt.want || got.Name() != "p" || got.Algorithm() != tt.algorithm || got != inner.asked[1] {
			t.Errorf("%v by %d: %v, want %s", tt.limit, tt.n, got.Limit(), tt.want)
		}
	}
}

// Together the parts let through no more than the limit's rate, and at once no more
// than the limit's burst or one each.
func TestDividedRate(t *testing.T) {
	for _, limit := range []algorithms.Limit{
		algorithms.PerMinute(1), algorithms.PerMinute(7), algorithms.PerMinute(100), algorithms.PerMinute(100).WithBurst(3),
	} {
		for _, n := range []int{1, 2, 3, 8} {
			clock := new(storetest.Clock)
			p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, limit)
			if err != nil {
				t.Fatal(err)
			}
			var parts []store.Store
			for range n {
				parts = append(parts, store.Divide(memstore.New(memstore.Config{Clock: clock.Now}), n))
			}
			const minutes = 50
			burst, all := int64(0), int64(0)
			for second := range minutes * 60 {
				for _, part := range parts {
					for {
						r, err := store.Take(context.Background(), part, p, "k", 1)
						if err != nil {
							t.Fatal(err)
						}
						if r.Limited {
							break
						}
						all++
						if second == 0 {
							burst++
						}
					}
				}
				clock.Advance(time.Second)
			}
			capacity := limit.Burst
			if capacity == 0 {
				capacity = limit.Count
			}
			if most := max(capacity, int64(n)); burst > most || all > most+limit.Count*minutes || all < int64(n) {
				t.Errorf("%v by %d: %d at once, %d in %d minutes", limit, n, burst, all, minutes)
			}
		}
	}
}

func ExampleDivide() {
	clock := new(storetest.Clock)
	p, err := algorithms.NewPolicy("api", algorithms.GCRA{}, algorithms.PerMinute(100))
	if err != nil {
		panic(err)
	}
	one := store.Divide(memstore.New(memstore.Config{Clock: clock.Now}), 4) // of four replicas
	r, err := store.Take(context.Background(), one, p, "k", 1)
	fmt.Println(r.Limit, r.Remaining, err)
	// Output: 25 24 <nil>
}
