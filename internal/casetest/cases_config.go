package casetest

import (
	"math"
	"time"

	"github.com/weirgo/weir/algorithms"
)

func limitZero(w *world) {
	w.refused("Count", algorithms.PerMinute(0), algorithms.PerMinute(-1))
	w.unparsable("0/1m", "-1/1m")
}

func burstZero(w *world) {
	w.refused("Burst", algorithms.PerSecond(1).WithBurst(0), algorithms.PerSecond(1).WithBurst(-1))
	w.unparsable("1/s burst 0", "1/s burst -3")
}

func periodZero(w *world) {
	w.refused("Period", per(5, 0, 0), algorithms.Limit{Count: 5}, per(5, -second, 0))
	w.refused("Count", per(0, 60*second, 0))
	w.unparsable("5/0s", "5/", "5", "5/-1s", "0/60s")
}

func absurdLimits(w *world) {
	w.unparsable("98765432198765432198765/1h")
	w.refused("Count", algorithms.PerHour(math.MaxInt64), algorithms.PerHour(1<<53+1))
	w.refused("Burst", per(1, second, math.MaxInt64))
	if p := w.refusedOr(per(1_000_000, time.Millisecond, 0)); p != nil {
		w.each(p, []int64{1, 1, 1}, []bool{true, true, true}, []int64{999_999, 999_998, 999_997})
	}
}

func verySlow(w *world) {
	p := w.refusedOr(per(1, 2_500_000_000*second, 0))
	if p == nil {
		return
	}
	r := w.take(p, 1)
	w.want("limited at 0", r.Limited, false)
	w.want("to live", r.ResetAfter > 0, true)
	w.at(1)
	r = w.take(p, 1)
	w.want("limited at 1", r.Limited, true)
	w.want("seconds to wait", seconds(r.RetryAfter), int64(2_499_999_999))
}

func burstAbove31Bits(w *world) {
	const n = 3_355_443_200
	if p := w.refusedOr(algorithms.PerSecond(n)); p != nil {
		w.each(p, []int64{1, n, 1}, []bool{true, false, true}, []int64{n - 1, n - 1, n - 2})
	}
}

func hugePeriod(w *world) {
	w.refused("Period", per(1, math.MaxInt64, 0))
	w.unparsable("1/2628000h", "1/109500d")
	// The longest that the type holds, in units that can be counted.
	for _, unit := range []time.Duration{time.Microsecond, second, hour} {
		if p := w.refusedOr(per(1, time.Duration(math.MaxInt64).Truncate(unit), 0)); p != nil {
			w.each(w.named(unit.String(), p.Limit()), []int64{1, 1}, []bool{true, false}, nil)
		}
	}
}

func rateZero(w *world) {
	w.refused("Count", algorithms.Limit{Count: 0, Period: second, Burst: 1})
	w.unparsable("0/s burst 1")
}
