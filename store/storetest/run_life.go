package storetest

import (
	"time"

	"github.com/weirgo/weir/algorithms"
)

// checkLifeTime: sentence 10.
func (f *fixture) checkLifeTime() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(6))
	reset := f.one(p, "k", 6).ResetAfter
	short := max(time.Microsecond, f.o.Resolution)
	f.clock.Advance(reset - short)
	if r := f.one(p, "k", 0); r.ResetAfter <= 0 || r.ResetAfter > short {
		sentence(10).broke(f, "%v before its reset the key is gone: %+v", short, r)
	}
	f.clock.Advance(short)
	if r := f.one(p, "k", 0); r.Remaining != 6 || r.ResetAfter != 0 {
		sentence(10).broke(f, "at its reset the key is not fresh: %+v", r)
	}
}

// checkChangedLimits: sentences 4 and 9.
func (f *fixture) checkChangedLimits() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(3))
	raised, lowered := f.policy("p", algorithms.PerMinute(5)), f.policy("p", algorithms.PerMinute(1))
	f.one(p, "k", 2)
	if r := f.one(raised, "k", 0); r.Remaining != 3 || r.Limit != 5 {
		sentence(9).broke(f, "2 of 3 used, limit raised to 5: %+v", r)
	}
	if r := f.one(lowered, "k", 0); r.Remaining != 0 || r.Limit != 1 {
		sentence(9).broke(f, "2 of 3 used, limit lowered to 1: %+v", r)
	}
	// Under a slower limit the same units last longer: a refusal and a look keep
	// the key alive for as long as that.
	for _, cost := range []int64{1, 0} {
		slow, key := f.policy("p", algorithms.PerDay(2)), "slow"+string(rune('0'+cost))
		f.one(f.policy("p", algorithms.PerMinute(6)), key, 5) // not all: a ban that has begun ends as it was meant to
		if r := f.one(slow, key, cost); !r.Limited {
			sentence(9).broke(f, "5 used of 2 a day: %+v", r)
		}
		f.clock.Advance(2 * minute)
		if r := f.one(slow, key, 1); !r.Limited {
			sentence(4).broke(f, "the key ran out at the old limit's time: %+v", r)
		}
	}
}
