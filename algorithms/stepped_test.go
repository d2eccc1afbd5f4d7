package algorithms_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// A give-back to a stepped bucket is worth all of it until the next step, however
// near that is, and then what no step can have drained.
func TestSteppedGiveBack(t *testing.T) {
	const minute = 60_000_000
	a := algorithms.TokenBucket{Stepped: true}
	p, err := a.Params(algorithms.Limit{Count: 4, Period: time.Minute, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	taken, _ := a.Decide(nil, nil, 0, p, 10, 0)
	for _, c := range []struct{ now, age, want int64 }{
		{1, 1, 6},                      // 6 of 10 given back, no step yet
		{minute - 1, minute - 1, 6},    // just before the step
		{100, 10_100, 6},               // the charge that opened it, as one may measure its age
		{minute, minute, 4 + 2},        // 4 have gone by the step; of the 6, 2 are certain to be there
		{minute + 5, 5, 4 + 6},         // taken after the step
		{minute + 5, 10_006, 4 + 2},    // before it
		{2*minute + 7, minute + 8, 10}, // two steps
	} {
		if _, r := a.Decide(nil, taken, c.now, p, -6, c.age); r.Remaining != c.want && c.want < 10 || r.Remaining > 10 {
			t.Errorf("at %d, taken %d ago: %+v, want %d left", c.now, c.age, r, c.want)
		}
	}
}
