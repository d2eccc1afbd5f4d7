package algorithms_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// steps is a bucket that drains by whole periods: the charges since the one that
// found it empty, of which Count units leave at each whole Period after that one.
type steps struct {
	burst, count, period int64
	list                 []admitted
}

func (o *steps) give() (capacity, longest int64) {
	return o.burst, o.period * (o.burst/o.count + 1)
}

// level is what is in the bucket. It is only asked for while that never was
// nothing since the first charge, so no step found less to take than Count.
func (o *steps) level(at int64) int64 {
	level := sum(o.list)
	if level == 0 {
		return 0
	}
	for step := o.list[0].at + o.period; step <= at && level > 0; step += o.period {
		level -= o.count
	}
	return max(0, level)
}

func (o *steps) left(at int64) int64 { return o.burst - o.level(at) }
func (o *steps) fresh(at int64) bool { return o.level(at) == 0 }

func (o *steps) take(now, units int64) {
	if o.fresh(now) {
		o.list = nil
	}
	o.list = append(o.list, admitted{now, units})
}

// giveBack: Count units of the charge count no more for each step since. The
// charge may seem 10 ms older than it is, or half a period if that is less.
func (o *steps) giveBack(now, units, age int64) {
	level := o.level(now)
	units = min(units, o.burst)
	last := now // of the steps
	if level > 0 {
		last -= (now - o.list[0].at) % o.period
	}
	age = max(0, age) - min(10_000, o.period/2)
	for since := now - last; since < age && units > 0; since += o.period {
		units -= o.count
	}
	if units = min(units, level); units > 0 {
		takeOff(o.list, units)
	}
	if units == level {
		o.list = nil
	}
}

func (o *steps) edges(age int64) []int64 {
	whole := age / o.period * o.period
	return append(around(age, o.period), whole, whole+o.period, whole+10_000, 2*o.period)
}

func TestSteppedAgainstList(t *testing.T) {
	for _, l := range []limit{
		algorithms.PerMinute(1),
		algorithms.PerSecond(3),
		{Count: 1, Period: time.Microsecond, Burst: 5},
		{Count: 2, Period: time.Microsecond},
		{Count: 3, Period: 7 * time.Microsecond, Burst: 20},
		{Count: 4, Period: 20_001 * time.Microsecond, Burst: 9},
		{Count: 5000, Period: 86_401 * time.Second, Burst: 12_345},
		{Count: 10_000_000, Period: 30 * 24 * time.Hour},
		{Count: 1 << 52, Period: 3 * time.Second, Burst: 1 << 53},
		{Count: 6, Period: 1 << 50 * time.Microsecond, Burst: 11},
	} {
		burst, count, period := max(l.Burst, l.Count), l.Count, l.Period.Microseconds()
		for name, a := range map[string]algorithms.Algorithm{
			"leaky": algorithms.LeakyBucket{Stepped: true},
			"token": algorithms.TokenBucket{Stepped: true},
		} {
			walk(t, name, policy(t, a, l), 1000, func() oracle {
				return &steps{burst: burst, count: count, period: period}
			})
		}
	}
}

// However old a give-back is said to be, it returns no more than what law 4 says of
// one that is 10 ms younger, and no less than if each part of a Period had a step in it.
func TestSteppedGiveBackBounds(t *testing.T) {
	const period = 60_000_000
	p := policy(t, algorithms.TokenBucket{Stepped: true}, limit{Count: 3, Period: time.Minute, Burst: 10})
	for _, taken := range []int64{0, 1, 59_999_999} { // when, after the charge that found the bucket full
		for _, age := range []int64{1, period - 1, period, period + 1, 2*period - taken - 1, 2*period - taken, 3 * period} {
			state, _ := p.Decide(nil, nil, 0, 1, 0)
			state, _ = p.Decide(nil, state, taken, 9, 0)
			now := taken + age
			_, before := p.Decide(nil, state, now, 0, 0)
			_, after := p.Decide(nil, state, now, -9, age)
			got := after.Remaining - before.Remaining
			used := p.Limit().Burst - before.Remaining
			since := now/period - min(now, taken+10_000)/period // a charge may seem 10 ms older than it is
			most, least := 9-3*since, 9-3*((age+period-1)/period)
			if got > max(0, min(most, used)) || got < max(0, min(least, used)) {
				t.Errorf("9 taken at %d, given back at %d: %d come back, %d to %d should", taken, now, got, least, most)
			}
		}
	}
}

// banned is Ban: the strikes since the first of the window, and a ban's end.
type banned struct {
	strikes, within, length int64
	list                    []admitted
	ends                    int64
	ban                     bool
}

func (o *banned) give() (capacity, longest int64) { return o.strikes, max(o.within, o.length) }

func (o *banned) edges(age int64) []int64 { return around(age, o.within) }

func (o *banned) fresh(at int64) bool {
	if o.ban {
		return at >= o.ends
	}
	return sum(o.list) == 0 || at >= o.list[0].at+o.within
}

func (o *banned) left(at int64) int64 {
	if o.fresh(at) {
		return o.strikes
	}
	return o.strikes - sum(o.list)
}

func (o *banned) take(now, units int64) {
	if o.fresh(now) {
		o.list, o.ban = nil, false
	}
	o.list = append(o.list, admitted{now, units})
	if sum(o.list) == o.strikes {
		o.ban, o.ends = true, now+o.length
	}
}

// giveBack lifts the ban of strikes that were too many, and they count on for as
// long as they would have without it.
func (o *banned) giveBack(now, units, age int64) {
	if o.fresh(now) || age > now-o.list[0].at+min(10_000, o.within/2) {
		return
	}
	takeOff(o.list, units)
	o.ban = false
}

func TestBanAgainstList(t *testing.T) {
	for _, b := range []algorithms.Ban{
		{Strikes: 1, Within: time.Second, For: time.Hour},
		{Strikes: 3, Within: time.Minute, For: 7 * time.Second},
		{Strikes: 5, Within: time.Minute, For: time.Hour},
		{Strikes: 2, Within: µs, For: 3 * µs},
		{Strikes: 4, Within: 9 * µs, For: 2 * µs},
		{Strikes: 6, Within: 15_001 * µs, For: 15_001 * µs},
		{Strikes: 5000, Within: 24 * time.Hour, For: 36 * time.Hour},
		{Strikes: 1 << 53, Within: time.Second, For: 2 * time.Second},
		{Strikes: 3, Within: 1 << 51 * µs, For: µs},
		{Strikes: 3, Within: 20 * µs, For: 1 << 51 * µs},
	} {
		p, err := b.Policy("p")
		if err != nil {
			t.Fatal(err)
		}
		walk(t, "ban", p, 2500, func() oracle {
			return &banned{strikes: b.Strikes, within: b.Within.Microseconds(), length: b.For.Microseconds()}
		})
	}
}
