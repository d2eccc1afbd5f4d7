package casetest

import (
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
