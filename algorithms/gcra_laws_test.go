package algorithms_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store/storetest"
)

func TestGCRALaws(t *testing.T) {
	storetest.Laws(t, storetest.Spec{Algorithm: algorithms.GCRA{}})
}

// With room for one unit only, the bound comes before the rate: the interval is
// a whole number of microseconds.
func TestGCRALawsWithoutRoom(t *testing.T) {
	storetest.Laws(t, storetest.Spec{
		Algorithm: algorithms.GCRA{},
		Limits: []algorithms.Limit{
			algorithms.PerSecond(3).WithBurst(1),
			algorithms.PerSecond(7).WithBurst(1),
			algorithms.PerSecond(300_000).WithBurst(1),
			{Count: 10, Period: 13 * time.Second, Burst: 1},
		},
		Rate: func(l algorithms.Limit) (int64, time.Duration) {
			each := (l.Period.Microseconds() + l.Count - 1) / l.Count
			return 1, time.Duration(each) * time.Microsecond
		},
	})
}
