package celltest_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// model is the module in exact integers, but where it uses floats: those are of 53
// bits here, too.
type model struct {
	tat *big.Int // Unix ns; nil without a key
	end *big.Int // the last Unix ms of the key; nil if it has no end
}

const expireError = "-Cell error: Store error: Error while setting key expire\r\n"

var (
	wrap64 = new(big.Int).Lsh(big.NewInt(1), 64)
	wrap63 = new(big.Int).Lsh(big.NewInt(1), 63)
	second = big.NewInt(1e9)
	milli  = big.NewInt(1e6)
)

func add(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
func sub(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) }
func quo(a, b *big.Int) *big.Int { return new(big.Int).Quo(a, b) }

// wrapped is what an int64 holds of a.
func wrapped(a *big.Int) *big.Int {
	a = add(a, wrap63)
	return sub(a.Mod(a, wrap64), wrap63)
}

func float(a *big.Int) *big.Float { return new(big.Float).SetPrec(53).SetInt(a) }

// ratio is a through b, cut to an int64.
func ratio(a, b *big.Float) *big.Int {
	if b.Sign() == 0 {
		if a.Sign() == 0 {
			return new(big.Int)
		}
		b = new(big.Float).SetPrec(53).SetFloat64(1e-300)
	}
	n, _ := new(big.Float).SetPrec(53).Quo(a, b).Int(nil)
	if last := sub(wrap63, big.NewInt(1)); n.Cmp(last) > 0 {
		return last
	}
	if first := new(big.Int).Neg(wrap63); n.Cmp(first) < 0 {
		return first
	}
	return n
}

func seconds(d *big.Int) *big.Int {
	whole, rest := new(big.Int).QuoRem(d, second, new(big.Int))
	fraction := new(big.Float).SetPrec(53).Quo(float(rest), float(second))
	n, _ := new(big.Float).SetPrec(53).Add(float(whole), fraction).Int(nil)
	if rest.Cmp(milli) >= 0 {
		n.Add(n, big.NewInt(1))
	}
	return n
}

// at drops a key that has run out.
func (m *model) at(now *big.Int) {
	if m.end != nil && quo(now, milli).Cmp(m.end) > 0 {
		*m = model{}
	}
}

func (m *model) throttle(now *big.Int, burst, count, period, quantity int64) string {
	interval := new(big.Int)
	if count != 0 {
		interval = ratio(float(new(big.Int).Mul(big.NewInt(period), second)), float(big.NewInt(count)))
	}
	if interval.Sign() == 0 {
		return "-Cell error: Store error: Zero rates are not supported\r\n"
	}
	limit := wrapped(add(big.NewInt(burst), big.NewInt(1)))
	dvt := wrapped(new(big.Int).Mul(interval, limit))
	inc := wrapped(new(big.Int).Mul(interval, big.NewInt(quantity)))
	tat := now
	if m.tat != nil {
		tat = m.tat
	}
	next := add(tat, inc)
	if now.Cmp(tat) > 0 {
		next = add(now, inc)
	}
	diff := sub(now, sub(next, dvt))
	limited, ttl, retry := diff.Sign() < 0, sub(next, now), big.NewInt(-1)
	if limited {
		ttl = sub(tat, now)
		if inc.Cmp(dvt) <= 0 {
			retry = seconds(new(big.Int).Neg(diff))
		}
	} else {
		*m = model{tat: new(big.Int).Mod(next, wrap64)}
		ms := quo(ttl, milli)
		switch {
		case ms.Sign() >= 0:
			m.end = add(quo(now, milli), ms)
		case ms.Int64() != -1: // which is the module API's "no expiry"
			return expireError
		}
	}
	remaining := new(big.Int)
	if room := sub(dvt, ttl); add(room, interval).Sign() > 0 {
		remaining = ratio(float(quo(room, big.NewInt(1e3))), float(quo(interval, big.NewInt(1e3))))
	}
	var n [5]int64
	if limited {
		n[0] = 1
	}
	for i, v := range []*big.Int{limit, remaining, retry, seconds(ttl)} {
		n[i+1] = v.Int64()
	}
	return answer(n)
}

// FuzzModel holds the command to the model on random traces.
func FuzzModel(f *testing.F) {
	w := start(f)
	c := w.dial(f)
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c.do(t, "FLUSHALL")
		trace(t, w, c, rand.New(rand.NewPCG(seed, 1)))
	})
}

// odd are numbers at which something wraps, or is refused.
var odd = []int64{0, -1, -2, -17, -30, 500_001, 1e9, 1e9 + 1, 4611686017, 4611686018, 9223372036, 9223372037, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1}

// trace is 100 steps on one key.
func trace(t *testing.T, w *world, c client, rnd *rand.Rand) {
	rarely := []int{30, 30, 30, 4}[rnd.IntN(4)]
	pick := func(usual ...int64) int64 {
		switch rnd.IntN(rarely) {
		case 0:
			return odd[rnd.IntN(len(odd))]
		case 1:
			return int64(rnd.Uint64()) >> rnd.IntN(64)
		}
		return usual[rnd.IntN(len(usual))]
	}
	// A trace has one limit most of the time, or nothing would ever be refused.
	limit := func() [3]int64 {
		return [3]int64{
			pick(0, 1, 2, 4, 15, 99),
			pick(1, 2, 3, 7, 30, 100, 1000, 3333, 100_000, 300_000, 600_000, 2_000_000),
			pick(1, 1, 1, 2, 10, 60, 3600, 86_400, 31_536_000),
		}
	}
	usual := limit()
	now, m := epoch.UnixNano()+rnd.Int64N(3e6), model{}
	for i := range 100 {
		l := usual
		if rnd.IntN(20) == 0 {
			l = limit()
		}
		quantity := pick(1, 1, 1, 1, 2, 3, 5, 0, -1, -2)
		interval := max(1, l[2]*1e9/max(1, l[1]))
		now += []int64{
			0, 0, 1, rnd.Int64N(1e3), rnd.Int64N(3e6), 1e6 - now%1e6 - 1, 1e6 - now%1e6,
			rnd.Int64N(min(max(interval, 1), 1e16)), min(max(interval, 1), 1e16), 1e9,
		}[rnd.IntN(10)]
		if rnd.IntN(20) == 0 {
			now -= rnd.Int64N([]int64{2, 1e3, 1e6, 1e9, 3600e9}[rnd.IntN(5)])
		}
		// Not to where nanoseconds end.
		if now < 1e18 || now > 6e18 {
			now = epoch.UnixNano()
		}
		w.SetTime(time.Unix(0, now))
		bigNow := big.NewInt(now)
		m.at(bigNow)
		where := fmt.Sprintf("step %d, at %d: %v %d", i, now, l, quantity)
		args := []string{"CL.THROTTLE", "k", itoa(l[0]), itoa(l[1]), itoa(l[2]), itoa(quantity)}
		if quantity == 1 {
			args = args[:5]
		}
		if got, want := c.do(t, args...), m.throttle(bigNow, l[0], l[1], l[2], quantity); got != want {
			t.Fatalf("%s: %q, want %q", where, got, want)
		}
		value, ttl := "$-1\r\n", int64(-2)
		if m.tat != nil {
			value, ttl = bulk(m.tat.String()), -1
		}
		if m.end != nil {
			ttl = sub(m.end, quo(bigNow, milli)).Int64()
		}
		if got := c.do(t, "GET", "k"); got != value {
			t.Fatalf("%s: the key holds %q, want %q", where, got, value)
		}
		const long = 290 * 365 * 86_400_000 // more than a Duration holds
		if got := c.do(t, "PTTL", "k"); ttl < long && got != integer(ttl) {
			t.Fatalf("%s: the key has %q ms left, want %d", where, got, ttl)
		}
	}
}
