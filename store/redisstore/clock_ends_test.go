package redisstore_test

import (
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// A clock of the caller's that is far from 1970 limits all the same: times that a
// double does not hold count as the last that it does.
func TestCallersClockAtItsEnds(t *testing.T) {
	var now time.Time
	s := newStore(t, redistest.Mini(t, storetest.NewClock()).Addr(), redisstore.Config{Clock: func() time.Time { return now }})
	for _, a := range casetest.Algorithms() {
		p, err := algorithms.NewPolicy("p", a, algorithms.PerMinute(2))
		if err != nil {
			t.Fatal(err)
		}
		for _, µs := range []int64{0, -1, 1 << 53, -1 << 53, 1<<53 + 1, -1<<53 - 1, math.MaxInt64, math.MinInt64} {
			now = time.UnixMicro(µs)
			key := casetest.Form(a) + now.String()
			wantPasses(t, s, p, key, true, true, false)
			if rs, err := takeGroup(s, key, p, gcra(t, "other", algorithms.PerMinute(2))); err != nil || !rs[0].Limited || rs[1].Limited {
				t.Errorf("%s at %d µs: %+v, %v", casetest.Form(a), µs, rs, err)
			}
		}
	}
}
