package algorithms_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// A bucket that drains by the millisecond and runs empty within one credits no part
// of it to what comes after: 86.4 ms make room for one unit, and no less.
func TestTickCreditsNothing(t *testing.T) {
	const count = 1_000_003
	coarse := params(t, algorithms.Limit{Count: count, Period: 24 * time.Hour, Burst: 2 * count})
	if coarse[3] != 1000 {
		t.Fatalf("a tick is %d µs", coarse[3])
	}
	s, _ := decide(nil, 0, coarse, 1, 0)
	now := int64(86_900) // the unit has drained at 86.4 ms
	s, r := decide(s, now, coarse, 2*count-1, 0)
	if r.Limited {
		t.Fatalf("%+v", r)
	}
	units := int64(2*count - 1)
	for at := now; at < now+1_000_000; at += 100 {
		next, r := decide(s, at, coarse, 1, 0)
		if s = next; !r.Limited {
			units++
		}
		if bound := 2*count + (at-now)*count/86_400_000_000; units > bound {
			t.Fatalf("%d units within %d µs, the bound is %d", units, at-now, bound)
		}
	}
	if units < 2*count+10 { // of 11.6
		t.Errorf("%d units in a second", units)
	}
}
