package algorithms_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// A user may reply five times a minute, in any minute. The key says who does
// what, so that replies and likes are counted apart.
func ExampleSlidingLog() {
	perMinute, err := algorithms.NewPolicy("posting", algorithms.SlidingLog{}, algorithms.PerMinute(5))
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	s := memstore.New(memstore.Config{Clock: func() time.Time { return now }}) // without Clock it is the real time

	post := func(user, action string) {
		r, err := store.Take(context.Background(), s, perMinute, user+":"+action, 1)
		switch {
		case err != nil:
			log.Fatal(err)
		case r.Limited:
			fmt.Println(action, "refused, try again in", r.RetryAfter)
		default:
			fmt.Println(action, "posted,", r.Remaining, "left")
		}
	}
	for range 6 {
		post("u1", "reply")
		now = now.Add(8 * time.Second)
	}
	post("u1", "like")
	now = now.Add(12 * time.Second)
	post("u1", "reply")
	// Output:
	// reply posted, 4 left
	// reply posted, 3 left
	// reply posted, 2 left
	// reply posted, 1 left
	// reply posted, 0 left
	// reply refused, try again in 20s
	// like posted, 4 left
	// reply posted, 0 left
}

// A code goes to a phone number at most once a minute and five times in any 24
// hours. The two are one group: what one of them refuses costs nothing under the
// other.
func ExampleNewPolicy_sendingCodes() {
	perMinute, err := algorithms.NewPolicy("code-minute", algorithms.FixedWindow{}, algorithms.PerMinute(1))
	if err != nil {
		log.Fatal(err)
	}
	perDay, err := algorithms.NewPolicy("code-day", algorithms.SlidingLog{}, algorithms.PerDay(5))
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	s := memstore.New(memstore.Config{Clock: func() time.Time { return now }}) // without Clock it is the real time

	send := func(phone string) {
		results := make([]algorithms.Result, 2)
		err := s.Take(context.Background(), []store.Charge{
			{Policy: perMinute, Key: phone, Cost: 1},
			{Policy: perDay, Key: phone, Cost: 1},
		}, results)
		switch {
		case err != nil:
			log.Fatal(err)
		case results[0].Limited || results[1].Limited:
			fmt.Println("refused, try again in", max(results[0].RetryAfter, results[1].RetryAfter))
		default:
			fmt.Println("sent,", results[1].Remaining, "left")
		}
	}
	const phone = "+12025550142"
	send(phone)
	send(phone)
	for range 5 {
		now = now.Add(time.Minute)
		send(phone)
	}
	// Output:
	// sent, 4 left
	// refused, try again in 1m0s
	// sent, 3 left
	// sent, 2 left
	// sent, 1 left
	// sent, 0 left
	// refused, try again in 23h55m0s
}

// A thousand credits a day, which begins at midnight in Shanghai. A cheap call
// costs one credit, an expensive one more.
func ExampleFixedWindow() {
	quota, err := algorithms.NewPolicy("quota",
		algorithms.FixedWindow{Aligned: true, Offset: 8 * time.Hour}, algorithms.PerDay(1000))
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, time.May, 1, 23, 30, 0, 0, time.FixedZone("UTC+8", 8*60*60))
	s := memstore.New(memstore.Config{Clock: func() time.Time { return now }}) // without Clock it is the real time

	call := func(credits int64) {
		r, err := store.Take(context.Background(), s, quota, "api-key-1", credits)
		switch {
		case err != nil:
			log.Fatal(err)
		case r.RetryAfter == algorithms.Never:
			fmt.Println(credits, "credits are more than a day has")
		case r.Limited:
			fmt.Println(credits, "credits refused,", r.Remaining, "left, more in", r.RetryAfter)
		default:
			fmt.Println(credits, "credits,", r.Remaining, "left")
		}
	}
	call(1)
	call(900)
	call(100)
	call(99)
	call(1001)
	now = now.Add(30 * time.Minute) // midnight
	call(100)
	// Output:
	// 1 credits, 999 left
	// 900 credits, 99 left
	// 100 credits refused, 99 left, more in 30m0s
	// 99 credits, 0 left
	// 1001 credits are more than a day has
	// 100 credits, 900 left
}

// Two requests a second for each client, and up to six at once from one that was
// quiet before: a page that loads its parts.
func ExampleGCRA() {
	perClient, err := algorithms.NewPolicy("client", algorithms.GCRA{}, algorithms.PerSecond(2).WithBurst(6))
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	s := memstore.New(memstore.Config{Clock: func() time.Time { return now }}) // without Clock it is the real time

	// ask makes eight requests at once.
	ask := func() {
		passed, wait := 0, time.Duration(0)
		for range 8 {
			r, err := store.Take(context.Background(), s, perClient, "192.0.2.1", 1)
			if err != nil {
				log.Fatal(err)
			}
			if r.Limited {
				wait = r.RetryAfter
			} else {
				passed++
			}
		}
		fmt.Println(passed, "of 8 passed, the next in", wait)
	}
	ask()
	now = now.Add(time.Second)
	ask()
	now = now.Add(time.Minute)
	ask()
	// Output:
	// 6 of 8 passed, the next in 500ms
	// 2 of 8 passed, the next in 500ms
	// 6 of 8 passed, the next in 500ms
}

// Who is refused three times in a minute is kept out for an hour. The ban is a
// charge in Strike mode: it is asked with the limit, and charged by a refusal.
func ExampleBan() {
	login, err := algorithms.NewPolicy("login", algorithms.GCRA{}, algorithms.PerMinute(5))
	if err != nil {
		log.Fatal(err)
	}
	ban, err := algorithms.Ban{Strikes: 3, Within: time.Minute, For: time.Hour}.Policy("ban")
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)
	s := memstore.New(memstore.Config{Clock: func() time.Time { return now }}) // without Clock it is the real time

	try := func(account string) {
		results := make([]algorithms.Result, 2)
		err := s.Take(context.Background(), []store.Charge{
			{Policy: login, Key: account, Cost: 1},
			{Policy: ban, Key: account, Cost: 1, Mode: store.Strike},
		}, results)
		switch {
		case err != nil:
			log.Fatal(err)
		case results[1].Limited:
			fmt.Println("banned, for", results[1].RetryAfter)
		case results[0].Limited:
			fmt.Println("refused, for", results[0].RetryAfter)
		default:
			fmt.Println("tried")
		}
	}
	for range 9 {
		try("alice")
	}
	now = now.Add(time.Hour)
	try("alice")
	// Output:
	// tried
	// tried
	// tried
	// tried
	// tried
	// refused, for 12s
	// refused, for 12s
	// refused, for 12s
	// banned, for 1h0m0s
	// tried
}
