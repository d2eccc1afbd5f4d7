package algorithms_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// windowLimits are easy and awkward, and as large and as small as they come.
var windowLimits = []limit{
	algorithms.PerMinute(1),
	algorithms.PerSecond(3),
	{Count: 7, Period: time.Microsecond},
	{Count: 1, Period: 2 * time.Microsecond},
	{Count: 3, Period: 7 * time.Microsecond},
	{Count: 5, Period: 19_999 * time.Microsecond},
	{Count: 5000, Period: 86_401 * time.Second},
	{Count: 10_000_000, Period: 30 * 24 * time.Hour},
	{Count: 1 << 53, Period: 3 * time.Second},
	{Count: 6, Period: 1 << 51 * time.Microsecond},
}

// number is which window of the clock a time is in.
func number(at, period, offset int64) int64 {
	n := (at + offset) / period
	if n*period > at+offset {
		n-- // a division rounds towards 0
	}
	return n
}

// openedWindow is FixedWindow: the charges of the window that the first of them
// opened.
type openedWindow struct {
	count, period int64
	list          []admitted
}

func (o *openedWindow) give() (capacity, longest int64) { return o.count, o.period }
func (o *openedWindow) edges(age int64) []int64         { return around(age, o.period) }

// over is whether no window is open. Where all is given back, none ever was.
func (o *openedWindow) fresh(at int64) bool {
	return sum(o.list) == 0 || at >= o.list[0].at+o.period
}

func (o *openedWindow) left(at int64) int64 {
	if o.fresh(at) {
		return o.count
	}
	return o.count - sum(o.list)
}

func (o *openedWindow) take(now, units int64) {
	if o.fresh(now) {
		o.list = nil
	}
	o.list = append(o.list, admitted{now, units})
}

// giveBack: what was taken before the window was opened does not count in it. An
// age has a round trip in it, for which 10 ms are allowed, or half the window.
func (o *openedWindow) giveBack(now, units, age int64) {
	if !o.fresh(now) && age <= now-o.list[0].at+min(10_000, o.period/2) {
		takeOff(o.list, units)
	}
}

// clockWindow is FixedWindow{Aligned: true}.
type clockWindow struct {
	count, period, offset int64
	list                  []admitted
}

func (o *clockWindow) give() (capacity, longest int64) { return o.count, o.period }
func (o *clockWindow) edges(age int64) []int64         { return around(age, o.period) }

// used is what was let in in the window of a time.
func (o *clockWindow) used(at int64) (units int64) {
	window := number(at, o.period, o.offset)
	for _, a := range o.list {
		if number(a.at, o.period, o.offset) == window {
			units += a.units
		}
	}
	return units
}

func (o *clockWindow) fresh(at int64) bool { return o.used(at) == 0 }
func (o *clockWindow) left(at int64) int64 { return o.count - o.used(at) }
func (o *clockWindow) take(now, units int64) {
	if o.fresh(now) {
		o.list = nil
	}
	o.list = append(o.list, admitted{now, units})
}

func (o *clockWindow) giveBack(now, units, age int64) {
	if !o.fresh(now) && age <= o.period && number(now-age, o.period, o.offset) == number(now, o.period, o.offset) {
		takeOff(o.list, units)
	}
}

func TestFixedWindowAgainstList(t *testing.T) {
	for _, l := range windowLimits {
		count, period := l.Count, l.Period.Microseconds()
		walk(t, "opened", policy(t, algorithms.FixedWindow{}, l), 5000, func() oracle {
			return &openedWindow{count: count, period: period}
		})
		for _, offset := range []time.Duration{0, 8 * time.Hour, -(3*time.Hour + 30*time.Minute), -time.Microsecond, 3 * time.Microsecond, -1000 * 24 * time.Hour} {
			w := algorithms.FixedWindow{Aligned: true, Offset: offset}
			walk(t, "aligned "+offset.String(), policy(t, w, l), 400, func() oracle {
				return &clockWindow{count: count, period: period, offset: offset.Microseconds()}
			})
		}
	}
}

// estimate is SlidingCounter: in fractions, the units of the current window, and
// of the one before it the part that is not yet a Period old.
type estimate struct {
	count, period int64
	list          []admitted
}

func (o *estimate) give() (capacity, longest int64) { return o.count, 2 * o.period }
func (o *estimate) edges(age int64) []int64         { return around(age, o.period) }

// used are the units of a window.
func (o *estimate) used(window int64) (units int64) {
	for _, a := range o.list {
		if number(a.at, o.period, 0) == window {
			units += a.units
		}
	}
	return units
}

func (o *estimate) left(at int64) int64 {
	window := number(at, o.period, 0)
	elapsed := big.NewRat(at-window*o.period, o.period)
	left := new(big.Rat).Sub(rat(1), elapsed)
	left.Mul(left, rat(o.used(window-1))).Add(left, rat(o.used(window)))
	return max(0, floor(left.Sub(rat(o.count), left)))
}

func (o *estimate) fresh(at int64) bool {
	window := number(at, o.period, 0)
	return o.used(window) == 0 && o.used(window-1) == 0
}

func (o *estimate) take(now, units int64) {
	if o.fresh(now) {
		o.list = nil
	}
	o.list = append(o.list, admitted{now, units})
}

// giveBack takes off the window that the charge was made in.
func (o *estimate) giveBack(now, units, age int64) {
	if age > 2*o.period {
		return
	}
	var same []int
	for i, a := range o.list {
		if number(a.at, o.period, 0) == number(now-age, o.period, 0) {
			same = append(same, i)
		}
	}
	for _, i := range same {
		off := min(units, o.list[i].units)
		o.list[i].units -= off
		units -= off
	}
}

func TestSlidingCounterAgainstFractions(t *testing.T) {
	for _, l := range windowLimits {
		count, period := l.Count, l.Period.Microseconds()
		if count > period {
			continue // at most one unit a microsecond
		}
		walk(t, "estimate", policy(t, algorithms.SlidingCounter{}, l), 2500, func() oracle {
			return &estimate{count: count, period: period}
		})
	}
}

// exactLog is SlidingLog: what was let in less than a Period ago counts.
type exactLog struct {
	count, period int64
	list          []admitted
}

func (o *exactLog) give() (capacity, longest int64) { return o.count, o.period }
func (o *exactLog) edges(age int64) []int64         { return around(age, o.period) }

func (o *exactLog) left(at int64) int64 {
	left := o.count
	for _, a := range o.list {
		if at-a.at < o.period {
			left -= a.units
		}
	}
	return left
}

func (o *exactLog) fresh(at int64) bool { return o.left(at) == o.count }

func (o *exactLog) take(now, units int64) {
	if o.fresh(now) {
		o.list = nil
	}
	o.list = append(o.list, admitted{now, units})
}

// giveBack takes out the oldest that are not older than the charge was, by an age
// for which 10 ms of a round trip are allowed.
func (o *exactLog) giveBack(now, units, age int64) {
	if age >= o.period {
		return
	}
	for i, a := range o.list {
		if now-a.at < o.period && now-a.at <= age+10_000 {
			takeOff(o.list[i:], units)
			return
		}
	}
}

func TestSlidingLogAgainstList(t *testing.T) {
	for _, l := range windowLimits {
		l.Count = min(l.Count, algorithms.MaxLog)
		count, period := l.Count, l.Period.Microseconds()
		steps := 3000
		if count > 1000 {
			steps = 300 // a state is copied at each step
		}
		walk(t, "log", policy(t, algorithms.SlidingLog{}, l), steps, func() oracle {
			return &exactLog{count: count, period: period}
		})
	}
}
