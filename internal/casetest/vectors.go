package casetest

import (
	"embed"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store/storetest"
)

//go:embed testdata/redis-cell.json testdata/redis-cell-exact.json
var vectors embed.FS

type scenario struct {
	Name    string
	StartNS int64 `json:"start_unix_ns"`
	Steps   []struct {
		AtMS     int64 `json:"at_ms"`
		AtNS     int64 `json:"at_ns"`
		Key      string
		MaxBurst int64 `json:"max_burst"`
		Count    int64
		PeriodS  int64  `json:"period_s"`
		Quantity *int64 // left out: 1
		Reply    [5]int64
		Ideal    *[5]int64 `json:"ideal_reply"` // where the module departs from ideal arithmetic
	}
}

const (
	drainedLook = "a look at a drained key is limited, since nothing can be taken; redis-cell says 0"
	changed     = "a change of limit keeps the units used, up to the new capacity; redis-cell keeps the time"
	steppedBack = "state further ahead of the clock than the full span is dropped; redis-cell refuses until the clock has caught up"
	gapIsWait   = "after a step back the gap is part of the waits; redis-cell takes it off what remains, too"
	wholeMicros = "time is counted in whole microseconds, these instants are not"
)

// departures are the scenarios in which weir's own laws give other answers than
// redis-cell, and why.
var departures = map[string]string{
	"peek-drained": drainedLook,

	"change-burst-down":       changed,
	"change-rate-faster":      changed,
	"change-rate-slower":      changed,
	"change-period":           changed,
	"change-and-back":         changed,
	"change-peek-down":        changed,
	"change-shrink-wait":      changed,
	"change-grow-then-shrink": changed,
	"change-rate-60-to-3600":  changed,

	"clock-back-1h":    steppedBack,
	"clock-back-small": gapIsWait,

	"instant-999us-early":       wholeMicros,
	"rounding-reset":            wholeMicros,
	"rounding-retry-0.999999ms": wholeMicros,
	"rate-7-per-60-exact":       wholeMicros,
	"rate-3-per-1-exact":        wholeMicros,
	"remaining-us-cut":          wholeMicros,
}

// Vectors replays the answers captured from redis-cell under GCRA.
func Vectors(t *testing.T, open Open) {
	for _, file := range []string{"redis-cell.json", "redis-cell-exact.json"} {
		data, err := vectors.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var all struct{ Scenarios []scenario }
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		if len(all.Scenarios) == 0 {
			t.Fatalf("%s holds no scenario", file)
		}
		for _, s := range all.Scenarios {
			t.Run(file+"/"+s.Name, func(t *testing.T) {
				difference := s.replay(t, open)
				reason, listed := departures[s.Name]
				switch {
				case difference != "" && !listed:
					t.Error(difference)
				case difference == "" && listed:
					t.Errorf("is listed as a departure (%s), but is none", reason)
				case listed:
					t.Logf("departs: %s\n%s", reason, difference)
				}
			})
		}
	}
}

// replay says where the answers differ first.
func (s scenario) replay(t *testing.T, open Open) string {
	clock := storetest.NewClock()
	start := clock.Now()
	if s.StartNS != 0 {
		start = time.Unix(0, s.StartNS)
	}
	clock.Set(start)
	st := open(t, clock)
	difference := ""
	for i, step := range s.Steps {
		clock.Set(start.Add(time.Duration(step.AtMS)*time.Millisecond + time.Duration(step.AtNS)))
		cost := int64(1)
		if step.Quantity != nil {
			cost = *step.Quantity
		}
		want := step.Reply
		if step.Ideal != nil {
			want = *step.Ideal
		}
		limit := algorithms.Limit{Count: step.Count, Period: time.Duration(step.PeriodS) * time.Second, Burst: step.MaxBurst + 1}
		if got := take(t, st, policy(t, "cell", algorithms.GCRA{}, limit), step.Key, cost).Cell(); got != want && difference == "" {
			difference = fmt.Sprintf("step %d: got %v, redis-cell %v", i+1, got, want)
		}
	}
	return difference
}
