package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// soak makes trouble at random for a time, of all kinds that a single server can have,
// to programs that run on through all of it.
func soak(t testing.TB, how []policy, pause, long time.Duration, seed uint64) (outcomes []outcome, strikes map[string]int) {
	var kinds []fault
	for _, f := range faults {
		if f.on == single {
			kinds = append(kinds, f)
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	trial := begin(newBed(t, single), how, pause, seed)
	strikes = map[string]int{}
	for end := time.Now().Add(long); time.Now().Before(end); {
		f := kinds[random.IntN(len(kinds))]
		trial.strike(f, time.Duration(20+random.IntN(1500))*time.Millisecond)
		strikes[f.Name]++
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond) // of real servers in order
	}
	time.Sleep(after)
	records, wrong := trial.end()
	for _, w := range wrong {
		t.Errorf("soak, seed %d: %s", seed, w)
	}
	for i, p := range how {
		all := trouble{until: 1 << 62}
		o := during(records[i], all)
		o.policy = p
		outcomes = append(outcomes, o)
	}
	return outcomes, strikes
}
