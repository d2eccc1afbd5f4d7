package celltest

import (
	"math"
	"math/big"
)

// request is what a client asks of a key.
type request struct{ burst, count, period, quantity int64 }

// interval is the time of one unit in nanoseconds, through the 64 bits of a float
// as in the module; 0 is a rate that it refuses.
func (r request) interval() int64 {
	if r.count == 0 {
		return 0
	}
	period := new(big.Int).Mul(big.NewInt(r.period), big.NewInt(1e9))
	f, _ := new(big.Float).SetInt(period).Float64()
	return integer(f / float64(r.count))
}

// decision is the module's answer.
type decision struct {
	reply [5]int64
	write bool   // whether the key is written
	tat   uint64 // what to it
	ttl   int64  // and the milliseconds that it has to live
}

// decide answers at now, in Unix nanoseconds, with what the key holds: tat, or
// nothing. Products wrap and times do not, as in the module.
func (r request) decide(now int64, tat uint64, found bool) decision {
	interval := r.interval()
	limit := r.burst + 1
	tolerance := interval * limit
	increment := interval * r.quantity

	present, ahead := nanos(now), span{}
	if found {
		ahead = span{int64(tat / 1e9), int64(tat % 1e9)}.plus(present, -1)
	}
	ttl := nanos(increment)
	if ahead.sign() > 0 {
		ttl = ttl.plus(ahead, 1)
	}
	retry := span{sec: -1}
	d := decision{reply: [5]int64{0, limit, 0, 0, 0}}
	if over := ttl.plus(nanos(tolerance), -1); over.sign() > 0 {
		d.reply[0] = 1
		ttl = ahead
		if increment <= tolerance {
			retry = over
		}
	} else {
		next := present.plus(ttl, 1)
		d.write, d.tat, d.ttl = true, uint64(next.sec)*1e9+uint64(next.ns), ttl.sec*1e3+ttl.ns/1e6
	}
	room := nanos(tolerance).plus(ttl, -1)
	if room.plus(nanos(interval), 1).sign() > 0 {
		d.reply[2] = integer(float64(room.micros()) / float64(nanos(interval).micros()))
	}
	d.reply[3], d.reply[4] = retry.seconds(), ttl.seconds()
	return d
}

// span is a length of time that may be longer than an int64 of nanoseconds. Its
// parts have the same sign, and |ns| < 1e9.
type span struct{ sec, ns int64 }

func nanos(n int64) span { return span{n / 1e9, n % 1e9} }

// plus is s plus t times f, which is 1 or -1.
func (s span) plus(t span, f int64) span {
	ns := s.ns + f*t.ns
	s = span{s.sec + f*t.sec + ns/1e9, ns % 1e9}
	switch {
	case s.sec > 0 && s.ns < 0:
		return span{s.sec - 1, s.ns + 1e9}
	case s.sec < 0 && s.ns > 0:
		return span{s.sec + 1, s.ns - 1e9}
	}
	return s
}

func (s span) sign() int64 {
	if s.sec != 0 {
		return s.sec
	}
	return s.ns
}

func (s span) micros() int64 { return s.sec*1e6 + s.ns/1e3 }

// seconds is the whole seconds, and one more if there is a millisecond left over.
// The module takes the whole ones of a float, to which 200 days less a nanosecond
// are 200 days.
func (s span) seconds() int64 {
	whole := integer(float64(s.sec) + float64(s.ns)/1e9)
	if s.ns >= 1e6 {
		whole++
	}
	return whole
}

// integer cuts a float as Rust does: to what is nearest, and NaN to 0.
func integer(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= 1<<63:
		return math.MaxInt64
	case f < -1<<63:
		return math.MinInt64
	}
	return int64(f)
}
