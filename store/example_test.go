package store_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// A client that keeps to the limit of the service it calls.
func ExampleWait() {
	perHost, err := algorithms.NewPolicy("host", algorithms.GCRA{}, algorithms.PerSecond(100).WithBurst(1))
	if err != nil {
		log.Fatal(err)
	}
	ctx, memory := context.Background(), memstore.New(memstore.Config{})
	start := time.Now()
	for range 3 {
		if err := store.Wait(ctx, memory, perHost, "api.example.com", 1); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("at least 20 ms:", time.Since(start) >= 20*time.Millisecond)

	// Who has no time for the wait is told so at once.
	perDay, err := algorithms.NewPolicy("day", algorithms.GCRA{}, algorithms.PerDay(1))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	fmt.Println(store.Wait(ctx, memory, perDay, "api.example.com", 1))
	err = store.Wait(ctx, memory, perDay, "api.example.com", 1)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// at least 20 ms: true
	// <nil>
	// true
}

// The asynchronous form: no goroutine waits.
func ExampleAfter() {
	perKey, err := algorithms.NewPolicy("key", algorithms.GCRA{}, algorithms.PerSecond(100).WithBurst(1))
	if err != nil {
		log.Fatal(err)
	}
	memory, sent := memstore.New(memstore.Config{}), make(chan error)
	for range 3 {
		store.After(context.Background(), memory, perKey, "mail", 1, func(err error) {
			sent <- err // here the mail would be sent, if err is nil
		})
	}
	for range 3 {
		fmt.Println(<-sent)
	}
	// Output:
	// <nil>
	// <nil>
	// <nil>
}
