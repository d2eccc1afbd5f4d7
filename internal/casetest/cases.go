package casetest

import (
	"context"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// world is a store under one case. Times are seconds after a start that is a
// multiple of every window.
type world struct {
	*testing.T
	store store.Store
	clock *storetest.Clock
	start time.Time
}

// Cases runs the field reports that a store decides by itself, each a subtest
// named by its id.
func Cases(t *testing.T, open Open) {
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			clock := storetest.NewClock()
			c.run(&world{T: t, store: open(t, clock), clock: clock, start: clock.Now()})
		})
	}
}

var cases = []struct {
	id  string
	run func(*world)
}{
	{"FW-07", raisedAfterHammering},
	{"FW-08", refusedCostLeavesRest},
	{"FW-10", exactlyTheLimit},
	{"GC-01", noSlotBeforeTheWait},
	{"GC-03", costAboveCapacity},
	{"GC-04", pollingMovesNothing},
	{"GC-05", aboveAThousandASecond},
	{"GC-06", hundredMicroseconds},
	{"GC-07", raisedHundredfold},
	{"GC-08", resetIsNeverNegative},
	{"HDR-08", waitAfterTheLast},
	{"HDR-12", remainingSequence},
	{"KEY-07", secondAndMinute},
	{"KEY-12", nearlyEqualKeys},
	{"LB-05", idleIsNotCredited},
	{"MW-08", refundAboveCapacity},
	{"RC-04", refundsStopAtFull},
	{"RL-14", limitTightened},
	{"SF-07", contextDone},
	{"TB-05", longIdle},
	{"TB-07", exactRefillInstant},
	{"TB-09", highRate},
	{"TB-10", slowDebtIsKept},
	{"TB-11", activeClientGetsNoFreshBucket},
	{"TB-12", rateBeyondTheBurst},
	{"TB-13", upperBound},
	{"TB-14", bucketInAMinute},
	{"TB-15", looking},
	{"CK-01", clockSetBack},
	{"CK-03", clockJumpsAhead},
	{"NC-01", limitZero},
	{"NC-02", burstZero},
	{"NC-03", periodZero},
	{"NC-04", absurdLimits},
	{"NC-05", verySlow},
	{"NC-06", burstAbove31Bits},
	{"NC-08", hugePeriod},
	{"TB-06", rateZero},
	{"PR-01", promiseOfRetryAfter},
}

func (w *world) at(seconds float64) {
	w.clock.Set(w.start.Add(time.Duration(seconds * float64(time.Second))))
}

func (w *world) policy(l algorithms.Limit) *algorithms.Policy { w.Helper(); return gcra(w.T, "p", l) }

func (w *world) take(p *algorithms.Policy, cost int64) algorithms.Result {
	w.Helper()
	return take(w.T, w.store, p, "k", cost)
}

// passed is how many of so many calls pass.
func (w *world) passed(p *algorithms.Policy, calls int) (n int) {
	w.Helper()
	for range calls {
		if !w.take(p, 1).Limited {
			n++
		}
	}
	return n
}

func (w *world) want(what string, got, want any) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// each makes one charge of each cost and wants these answers.
func (w *world) each(p *algorithms.Policy, costs []int64, passes []bool, remaining []int64) {
	w.Helper()
	for i, cost := range costs {
		r := w.take(p, cost)
		if r.Limited == passes[i] || remaining != nil && r.Remaining != remaining[i] {
			w.Errorf("call %d, cost %d: %+v; want pass %v, remaining %v", i+1, cost, r, passes[i], remaining)
		}
	}
}

// refused wants limits that a constructor refuses.
func (w *world) refused(limits ...algorithms.Limit) {
	w.Helper()
	for _, l := range limits {
		if p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, l); err == nil || p != nil {
			w.Errorf("%+v is accepted", l)
		}
	}
}

func (w *world) unparsable(texts ...string) {
	w.Helper()
	for _, s := range texts {
		if l, err := algorithms.ParseLimit(s); err == nil {
			w.Errorf("%q is read as %+v", s, l)
		}
	}
}

func contextDone(w *world) {
	p := w.policy(algorithms.PerMinute(3))
	done, cancel := context.WithCancel(context.Background())
	cancel()
	for range 10 {
		if _, err := store.Take(done, w.store, p, "k", 1); err != context.Canceled {
			w.Errorf("a cancelled call: %v", err)
		}
	}
	w.each(p, []int64{1, 1, 1, 1}, []bool{true, true, true, false}, nil)
}
