package algorithms_test

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// reference is GCRA in fractions, as the papers have it: a theoretical arrival
// time that each unit moves on by Period / Count. Slow, and easy to believe.
type reference struct {
	interval  *big.Rat // µs a unit
	tolerance *big.Rat // µs in all
	tat       *big.Rat
	burst     int64
}

func newReference(l algorithms.Limit) *reference {
	r := &reference{interval: big.NewRat(l.Period.Microseconds(), l.Count), tat: new(big.Rat)}
	r.burst = l.Burst
	if r.burst == 0 {
		r.burst = l.Count
	}
	r.tolerance = new(big.Rat).Mul(r.interval, rat(r.burst))
	return r
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// take is whether the cost passes, what remains, and the waits rounded up to 1 µs.
func (r *reference) take(now, cost, age int64) (limited bool, remaining, retry, reset int64) {
	at := rat(now)
	if r.tat.Cmp(at) < 0 {
		r.tat.Set(at)
	}
	if cost < 0 {
		back := new(big.Rat).Mul(r.interval, rat(-cost))
		if back.Sub(back, rat(age)); back.Sign() > 0 {
			r.tat.Sub(r.tat, back)
		}
		if r.tat.Cmp(at) < 0 {
			r.tat.Set(at)
		}
		cost = 0
	}
	next := new(big.Rat).Add(r.tat, new(big.Rat).Mul(r.interval, rat(cost)))
	room := new(big.Rat).Add(at, r.tolerance)
	limited = next.Cmp(room) > 0
	if !limited {
		r.tat.Set(next)
		next.Add(next, new(big.Rat).Mul(r.interval, rat(cost)))
	}
	left := new(big.Rat).Sub(room, r.tat)
	return limited, floor(left.Quo(left, r.interval)), max(0, ceil(next.Sub(next, room))), ceil(new(big.Rat).Sub(r.tat, at))
}

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }

// GCRA is compared with fractions. Where a level drains to nothing within a
// microsecond the two agree too, because the reference starts afresh then.
func TestGCRAAgainstFractions(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for run := range 300 {
		l := algorithms.Limit{Count: 1 + rnd.Int64N(40), Period: time.Duration(1+rnd.Int64N(5_000_000)) * time.Microsecond}
		if rnd.IntN(2) == 0 {
			l.Burst = 1 + rnd.Int64N(60)
		}
		p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, l)
		if err != nil {
			t.Fatal(err)
		}
		ref := newReference(l)
		var state algorithms.State
		now := int64(1_700_000_000_000_000)
		for step := range 200 {
			now += rnd.Int64N(1 + 3*l.Period.Microseconds()/l.Count)
			cost, age := 1+rnd.Int64N(3), int64(0)
			switch rnd.IntN(6) {
			case 0:
				cost, age = -cost, rnd.Int64N(1+l.Period.Microseconds()/l.Count)
			case 1:
				cost = 0
			}
			// More than the capacity is another matter: Never, or clamped.
			if most := ref.burst; max(cost, -cost) > most {
				cost = min(max(cost, -most), most)
			}
			var r algorithms.Result
			state, r = p.Decide(nil, state, now, cost, age)
			limited, remaining, retry, reset := ref.take(now, cost, age)
			if cost == 0 {
				limited = remaining == 0
			}
			if r.Limited != limited || r.Remaining != remaining || cost > 0 && r.RetryAfter.Microseconds() != retry || r.ResetAfter.Microseconds() != reset {
				t.Fatalf("seed %d, run %d, step %d, %v, cost %d, age %d: %+v; fractions say %v %d %d %d",
					seed, run, step, l, cost, age, r, limited, remaining, retry, reset)
			}
		}
	}
}

// A state that no GCRA made is a key never seen, not a panic.
func TestGCRAForeignState(t *testing.T) {
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerMinute(3))
	if err != nil {
		t.Fatal(err)
	}
	_, want := p.Decide(nil, nil, 1000, 1, 0)
	for _, s := range []algorithms.State{{}, {1}, {1, 2}, {1, 2, 3, 4}, {1, 2, 0}, {1, 2, -1}, {0, 2000, 1}, {-1, 2000, 1}} {
		if _, r := p.Decide(nil, s, 1000, 1, 0); r != want {
			t.Errorf("%v: %+v, want %+v", s, r, want)
		}
	}
}

func BenchmarkGCRA(b *testing.B) {
	p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerSecond(1_000_000))
	if err != nil {
		b.Fatal(err)
	}
	var state, next algorithms.State
	now := int64(1_700_000_000_000_000)
	for b.Loop() {
		now++
		next, _ = p.Decide(next[:0], state, now, 1, 0)
		state, next = next, state
	}
}
