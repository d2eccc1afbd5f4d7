package algorithms

import (
	"math/bits"
	"time"
)

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// ceilDiv is a/b rounded up, for a ≥ 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}

// floorMod is what a is past the last whole multiple of b, for b > 0: never
// negative, unlike a % b.
func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// mulDiv is a × b / c and its rest, for a, b ≥ 0 and b ≤ c, so that the quotient
// fits where the product does not.
func mulDiv(a, b, c int64) (q, r int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	uq, ur := bits.Div64(hi, lo, uint64(c))
	return int64(uq), int64(ur)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
