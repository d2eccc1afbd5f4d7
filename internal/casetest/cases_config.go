package casetest

import (
	"math"
	"time"

	"github.com/weirgo/weir/algorithms"
)

func limitZero(w *world) {
	w.refused(algorithms.PerMinute(0), algorithms.PerMinute(-1))
	w.unparsable("0/1m", "-1/1m")
}

func burstZero(w *world) {
	w.refused(algorithms.PerSecond(1).WithBurst(0), algorithms.PerSecond(1).WithBurst(-1))
	w.unparsable("1/s burst 0", "1/s burst -3")
}

func periodZero(w *world) {
	w.refused(per(5, 0, 0), algorithms.Limit{Count: 5}, per(5, -second, 0), per(0, 60*second, 0))
	w.unparsable("5/0s", "5/", "5", "5/-1s", "0/60s")
}

func absurdLimits(w *world) {
	w.unparsable("98765432198765432198765/1h")
	w.refused(algorithms.PerHour(math.MaxInt64), algorithms.PerHour(1<<53+1), per(1, second, math.MaxInt64))
	p := w.policy(per(1_000_000, time.Millisecond, 0))
	w.each(p, []int64{1, 1, 1}, []bool{true, true, true}, []int64{999_999, 999_998, 999_997})
}

func verySlow(w *world) {
	p := w.policy(per(1, 2_500_000_000*second, 1))
	w.want("at 0", w.passed(p, 1), 1)
	w.at(1)
	r := w.take(p, 1)
	w.want("limited at 1", r.Limited, true)
	w.want("seconds to wait", r.Cell()[3], int64(2_499_999_999))
}

func burstAbove31Bits(w *world) {
	const n = 3_355_443_200
	p := w.policy(algorithms.PerSecond(n).WithBurst(n))
	w.each(p, []int64{1, n, 1}, []bool{true, false, true}, []int64{n - 1, n - 1, n - 2})
}

func hugePeriod(w *world) {
	w.refused(per(1, math.MaxInt64, 0))
	w.unparsable("1/2628000h", "1/109500d")
}

func rateZero(w *world) {
	w.refused(algorithms.Limit{Count: 0, Period: second, Burst: 1})
	w.unparsable("0/s burst 1")
}
