package histories

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// count is how many histories a test makes.
func count(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// forms runs f for groups of charges and for charges each alone, of which stores
// often take another way.
func forms(t *testing.T, f func(t *testing.T, groups bool)) {
	t.Run("groups", func(t *testing.T) { f(t, true) })
	t.Run("single", func(t *testing.T) { f(t, false) })
}

// yielding is a clock that lets others run once it was read, so that calls meet
// within a store, also on one processor.
func yielding(c *storetest.Clock) func() time.Time {
	var n atomic.Uint32
	return func() time.Time {
		now := c.Now()
		if n.Add(1)%2 == 0 {
			runtime.Gosched()
		}
		return now
	}
}

func memory(t *testing.T, s subject, groups bool) *bench {
	clock := storetest.NewClock()
	return &bench{
		subject: s,
		store:   memstore.New(memstore.Config{Clock: yielding(clock)}),
		clock:   clock,
		jump:    func(set func()) { set() },
		groups:  groups,
		seed:    seed(t),
	}
}

func TestMemstore(t *testing.T) {
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			forms(t, func(t *testing.T, groups bool) { memory(t, s, groups).all(t, count(150, 20)) })
		})
	}
}
