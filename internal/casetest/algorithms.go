package casetest

import (
	"slices"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Algorithms are all of package algorithms, in each of their forms.
func Algorithms() []algorithms.Algorithm {
	return []algorithms.Algorithm{
		algorithms.GCRA{},
		algorithms.LeakyBucket{},
		algorithms.LeakyBucket{Stepped: true},
		algorithms.TokenBucket{},
		algorithms.TokenBucket{Stepped: true},
		algorithms.FixedWindow{},
		algorithms.FixedWindow{Aligned: true, Offset: 8 * time.Hour},
		algorithms.SlidingCounter{},
		algorithms.SlidingLog{},
		AnyBan{},
	}
}

// AnyBan is [algorithms.Ban] under any limit: Count strikes within a Period ban
// for half of another and a microsecond.
type AnyBan struct{ algorithms.Ban }

// Params compiles the Ban that l stands for.
func (AnyBan) Params(l algorithms.Limit) ([]int64, error) {
	b := algorithms.Ban{Strikes: l.Count, Within: l.Period, For: (l.Period + l.Period/2).Truncate(time.Microsecond) + time.Microsecond}
	return b.Params(l)
}

// What a case is run under.
var (
	// meters never pause: under the same limit they answer alike.
	meters = []algorithms.Algorithm{algorithms.GCRA{}, algorithms.LeakyBucket{}, algorithms.TokenBucket{}}

	// buckets are those that drain by whole periods, too. At one unit a period they
	// let through the same calls as meters.
	buckets = named("gcra", "leaky-bucket", "token-bucket")

	windows = named("fixed-window")
	counter = named("sliding-counter")
	log     = named("sliding-log")

	// days are windows of a day, by UTC's calendar and by others', and of 24
	// hours.
	days = slices.Concat(windows, []algorithms.Algorithm{
		algorithms.FixedWindow{Aligned: true}, algorithms.FixedWindow{Aligned: true, Offset: time.Hour}, algorithms.FixedWindow{Aligned: true, Offset: 2 * time.Hour},
	}, log)

	// freeing are those that have room for a unit a period after one.
	freeing = slices.Concat(buckets, windows, log)

	// unbounded are those with no small bound of their own on the limit.
	unbounded = slices.Concat(buckets, windows, counter)
)

// named are the forms of the algorithms of these names.
func named(names ...string) []algorithms.Algorithm {
	return slices.DeleteFunc(Algorithms(), func(a algorithms.Algorithm) bool { return !slices.Contains(names, a.Name()) })
}

// Form is a name for an algorithm that tells its forms apart.
func Form(a algorithms.Algorithm) string {
	name := a.Name()
	switch a := a.(type) {
	case algorithms.LeakyBucket:
		if a.Stepped {
			name += "-stepped"
		}
	case algorithms.TokenBucket:
		if a.Stepped {
			name += "-stepped"
		}
	case algorithms.FixedWindow:
		if a.Aligned {
			name += "-aligned"
		}
		if a.Offset != 0 {
			name += "-" + a.Offset.String()
		}
	}
	return name
}
