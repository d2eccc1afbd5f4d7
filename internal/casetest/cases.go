package casetest

import (
	"slices"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store/storetest"
)

// Cases runs the field reports that a store decides by itself, each a subtest
// named by its id, and in that one for each algorithm that the report concerns.
func Cases(t *testing.T, open Open) {
	for _, c := range cases {
		if testing.Short() && long[c.id] {
			c.under = c.under[:1]
		}
		t.Run(c.id, func(t *testing.T) {
			for _, a := range c.under {
				t.Run(Form(a), func(t *testing.T) {
					clock := storetest.NewClock()
					c.run(&world{T: t, algorithm: a, store: open(t, clock), clock: clock, start: clock.Now()})
				})
			}
		})
	}
	t.Run("PR-01", func(t *testing.T) {
		clock := storetest.NewClock()
		promiseOfRetryAfter(&world{T: t, store: open(t, clock), clock: clock})
	})
}

// long are those of a thousand calls or more an algorithm. In short mode one of
// their algorithms has to do.
var long = map[string]bool{
	"FW-04": true, "GC-06": true, "LB-03": true, "TB-07": true, "TB-11": true, "TB-12": true, "TB-13": true,
}

var cases = []struct {
	id    string
	under []algorithms.Algorithm
	run   func(*world)
}{
	{"CK-01", Algorithms(), clockSetBack},
	{"CK-03", Algorithms(), clockJumpsAhead},
	{"CK-04", days, oneNotionOfADay},
	{"CK-05", days, dayOf25Hours},
	{"FW-01", slices.Concat(windows, named("ban")), windowsClose},
	{"FW-02", slices.Concat(windows, counter, log), boundaryBurst},
	{"FW-03", windows, windowEndsOnTime},
	{"FW-04", windows, overloadedWindows},
	{"FW-07", Algorithms(), raisedAfterHammering},
	{"FW-08", Algorithms(), refusedCostLeavesRest},
	{"FW-10", Algorithms(), exactlyTheLimit},
	{"GC-01", meters, noSlotBeforeTheWait},
	{"GC-03", Algorithms(), costAboveCapacity},
	{"GC-04", buckets, pollingMovesNothing},
	{"GC-05", meters, aboveAThousandASecond},
	{"GC-06", meters, hundredMicroseconds},
	{"GC-07", meters, raisedHundredfold},
	{"GC-08", meters, resetIsNeverNegative},
	{"HDR-08", buckets, waitAfterTheLast},
	{"HDR-12", Algorithms(), remainingSequence},
	{"KEY-07", freeing, secondAndMinute},
	{"KEY-12", Algorithms(), nearlyEqualKeys},
	{"LB-01", buckets, partOfAUnitIsNoRoom},
	{"LB-03", buckets, refusalsFillNothing},
	{"LB-05", buckets, idleIsNotCredited},
	{"MW-08", buckets, refundAboveCapacity},
	{"NC-01", Algorithms(), limitZero},
	{"NC-02", Algorithms(), burstZero},
	{"NC-03", Algorithms(), periodZero},
	{"NC-04", Algorithms(), absurdLimits},
	{"NC-05", Algorithms(), verySlow},
	{"NC-06", Algorithms(), burstAbove31Bits},
	{"NC-08", Algorithms(), hugePeriod},
	{"RC-04", meters, refundsStopAtFull},
	{"RL-14", Algorithms(), limitTightened},
	{"SC-01", counter, previousWindowCounts},
	{"SC-02", counter, limitOfOne},
	{"SC-03", counter, shareIsNotCut},
	{"SC-05", counter, idleGap},
	{"SC-06", counter, rollOverAfterAPause},
	{"SF-07", Algorithms(), contextDone},
	{"SL-01", log, sameInstant},
	{"SL-02", log, roomJustFreed},
	{"SL-05", log, refusalsAreNotLogged},
	{"SL-06", log, waitForTheOldest},
	{"TB-01", buckets, fractionsAreKept},
	{"TB-02", meters, refillWithinASecond},
	{"TB-03", meters, oneAndAHalfASecond},
	{"TB-04", buckets, hugeCostIsNoDebt},
	{"TB-05", buckets, longIdle},
	{"TB-06", Algorithms(), rateZero},
	{"TB-07", meters, exactRefillInstant},
	{"TB-09", unbounded, highRate},
	{"TB-10", buckets, slowDebtIsKept},
	{"TB-11", meters, activeClientGetsNoFreshBucket},
	{"TB-12", meters, rateBeyondTheBurst},
	{"TB-13", meters, upperBound},
	{"TB-14", slices.Concat(meters, log), bucketInAMinute},
	{"TB-15", Algorithms(), looking},
}
