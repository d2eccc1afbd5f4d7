package main

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			for _, o := range once(t, f, policies, 60*time.Millisecond, 400*time.Millisecond, 1) {
				t.Logf("%s: %d admitted, %d refused, %d errors, p99 %v, worst %v, right again after %v",
					o.policy, o.admitted, o.refused, o.errors, o.p99, o.worst, o.recovery)
			}
		})
	}
}

var long = flag.Duration("soak", 5*time.Second, "how long to make trouble at random")

func TestSoak(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	outcomes, strikes := soak(t, policies, 60*time.Millisecond, *long, seed)
	t.Log(strikes)
	for _, o := range outcomes {
		t.Logf("%s: %d admitted, %d refused, %d errors, p99 %v, longest %v", o.policy, o.admitted, o.refused, o.errors, o.p99, o.worst)
	}
}
