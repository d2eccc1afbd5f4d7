package resilient_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/resilient"
)

// In the place of shared a program has its redisstore.
func ExampleNew() {
	shared := &shared{Store: memstore.New(memstore.Config{})}
	limits := resilient.New(shared, resilient.Config{Replicas: 4})

	p, err := algorithms.NewPolicy("api", algorithms.GCRA{}, algorithms.PerMinute(100))
	if err != nil {
		panic(err)
	}
	r, err := store.Take(context.Background(), limits, p, "k", 1)
	fmt.Println(r.Remaining, err)

	shared.err = errors.New("connection refused")
	r, err = store.Take(context.Background(), limits, p, "k", 1)
	fmt.Println(r.Remaining, err)
	// Output:
	// 99 <nil>
	// 24 <nil>
}
