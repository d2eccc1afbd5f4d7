package main

import (
	"context"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// What is drawn: 70 s of traffic under a limit of 20 requests in 10 s.
const (
	count  = 20
	period = 10 * time.Second
	length = 70 * time.Second
)

// traffic is when requests come.
func traffic() (at []time.Duration) {
	for _, part := range []struct {
		from, to time.Duration // in seconds
		requests int
	}{
		{2, 9, 3},    // hardly any
		{9, 11, 40},  // a burst over the edge of two windows by the clock
		{12, 21, 3},  // hardly any; the first opens a window
		{21, 23, 40}, // a burst over that window's edge
		{32, 52, 80}, // twice the limit, steadily
		{60, 61, 30}, // after a pause, a burst
		{61, 70, 9},  // and half the limit
	} {
		for i := range part.requests {
			at = append(at, part.from*time.Second+(part.to-part.from)*time.Second*time.Duration(i)/time.Duration(part.requests))
		}
	}
	return at
}

// subject is what the traffic goes through.
type subject struct {
	name  string
	group []store.Charge // without their key
}

func subjects() ([]subject, error) {
	limit := algorithms.Limit{Count: count, Period: period}
	ban := algorithms.Ban{Strikes: 10, Within: period, For: 15 * time.Second}
	banned, err := ban.Policy("ban")
	if err != nil {
		return nil, err
	}
	all := []subject{}
	for _, s := range []struct {
		name      string
		algorithm algorithms.Algorithm
		limit     algorithms.Limit
	}{
		{"GCRA, LeakyBucket, TokenBucket", algorithms.GCRA{}, limit},
		{"with a Burst of 5", algorithms.GCRA{}, limit.WithBurst(5)},
		{"either bucket, Stepped", algorithms.TokenBucket{Stepped: true}, limit},
		{"FixedWindow", algorithms.FixedWindow{}, limit},
		{"FixedWindow, Aligned", algorithms.FixedWindow{Aligned: true}, limit},
		{"SlidingCounter", algorithms.SlidingCounter{}, limit},
		{"SlidingLog", algorithms.SlidingLog{}, limit},
		{"SlidingLog with a Ban, 15 s for 10", algorithms.SlidingLog{}, limit},
	} {
		p, err := algorithms.NewPolicy("p", s.algorithm, s.limit)
		if err != nil {
			return nil, err
		}
		all = append(all, subject{s.name, []store.Charge{{Policy: p, Key: "k", Cost: 1}}})
	}
	last := &all[len(all)-1]
	last.group = append(last.group, store.Charge{Policy: banned, Key: "k", Cost: 1, Mode: store.Strike})
	return all, nil
}

// passes is when requests pass, of those that come at these times.
func (s subject) passes(at []time.Duration) (passed []time.Duration, err error) {
	start := time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC) // a window by the clock begins
	now := start
	memory := memstore.New(memstore.Config{Clock: func() time.Time { return now }})
	results := make([]algorithms.Result, len(s.group))
	for _, t := range at {
		now = start.Add(t)
		if err := memory.Take(context.Background(), s.group, results); err != nil {
			return nil, err
		}
		limited := false
		for _, r := range results {
			limited = limited || r.Limited
		}
		if !limited {
			passed = append(passed, t)
		}
	}
	return passed, nil
}

// within is how many of these times are in [from, to).
func within(at []time.Duration, from, to time.Duration) (n int) {
	for _, t := range at {
		if from <= t && t < to {
			n++
		}
	}
	return n
}

// most is the most of these times in any one period.
func most(at []time.Duration) (n int) {
	for _, t := range at {
		n = max(n, within(at, t, t+period))
	}
	return n
}
