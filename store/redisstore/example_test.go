package redisstore_test

import (
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// The server need not be there: nothing is sent before the first request.
func Example() {
	perIP, err := algorithms.NewPolicy("ip", algorithms.GCRA{}, algorithms.PerMinute(100).WithBurst(20))
	if err != nil {
		log.Fatal(err)
	}

	client := redis.NewClient(&redis.Options{
		Addr:                  "localhost:6379",
		ContextTimeoutEnabled: true, // the deadlines of requests are heeded; New demands it
		DialTimeout:           500 * time.Millisecond,
		ReadTimeout:           500 * time.Millisecond,
		DialerRetries:         1, // a server that is away is found out at once
	})
	shared, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	limit, err := middleware.New(middleware.Config{
		Store: shared,
		Rules: []middleware.Rule{{Policy: perIP, Key: keyfunc.IP(keyfunc.Trust{})}},
	})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(limit != nil)
	// Output: true
}

// On a cluster a group of charges for several keys needs a tag, which keeps all
// keys on one server, or is made one by one.
func Example_cluster() {
	perPhone, err := algorithms.NewPolicy("phone", algorithms.GCRA{}, algorithms.PerHour(5))
	if err != nil {
		log.Fatal(err)
	}
	perAddress, err := algorithms.NewPolicy("address", algorithms.GCRA{}, algorithms.PerHour(20))
	if err != nil {
		log.Fatal(err)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                 []string{"localhost:7000", "localhost:7001"},
		ContextTimeoutEnabled: true,
	})
	spread, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		log.Fatal(err)
	}
	tagged, err := redisstore.New(client, redisstore.Config{Tag: "accounts"})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(spread.Validate(perPhone, perAddress) != nil)
	fmt.Println(tagged.Validate(perPhone, perAddress))
	fmt.Println(store.Sequential(spread).Validate(perPhone, perAddress))
	// Output:
	// true
	// <nil>
	// <nil>
}
