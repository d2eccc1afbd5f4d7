package cellstore_test

import (
	"context"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/cellstore"
)

// wire is a client that looks at what is sent, and answers nothing.
type wire func(args []any)

func (w wire) Process(_ context.Context, cmd redis.Cmder) error {
	w(cmd.Args())
	cmd.SetErr(redis.Nil)
	return redis.Nil
}

// The module ends the whole server over a key that is no UTF-8, and wraps its sums
// in silence. Whatever a caller gives, nothing of the kind is sent: keys are text,
// two keys are two, and the numbers stay where the module counts right, until the
// year 2100.
func FuzzSent(f *testing.F) {
	f.Add([]byte("k"), []byte("l"), int64(30), int64(60_000_000), int64(16), int64(1), int64(0))
	f.Add([]byte("a{b}%\xff\x00"), []byte("%FF"), int64(1), int64(1), int64(0), int64(-1), int64(5))
	f.Add([]byte("\xed\xa0\x80"), []byte("%ED%A0%80"), int64(1_000_000), int64(1_000_000), int64(0), int64(math.MaxInt64), int64(0))
	f.Add([]byte(strings.Repeat("x", 300)), []byte(strings.Repeat("x", 301)), int64(1<<53), int64(1<<53), int64(1<<53), int64(math.MinInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, key, other []byte, count, period, burst, cost, age int64) {
		if period > math.MaxInt64/1000 || period < math.MinInt64/1000 || len(key) == 0 || len(other) == 0 {
			return
		}
		p, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.Limit{Count: count, Period: time.Duration(period) * time.Microsecond, Burst: burst})
		if err != nil {
			return
		}
		var names []string
		s, err := cellstore.New(wire(func(args []any) {
			name := args[1]
			if args[0] != "cl.throttle" {
				name = args[3]
				for _, part := range args[4:] {
					if n := part.(int64); n < 0 || n > math.MaxInt64/1_000_000 {
						t.Errorf("%v gives back more than there is time", args)
					}
				}
			} else {
				checkThrottle(t, args)
			}
			names = append(names, name.(string))
			if !utf8.ValidString(name.(string)) || !strings.HasPrefix(name.(string), "weir-cell:{") || !strings.HasSuffix(name.(string), "}:p:gcra:cell") || strings.Count(name.(string), "}") != 1 {
				t.Errorf("the key sent is %q", name)
			}
		}), cellstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		valid := s.Validate(p) == nil
		take := func(key []byte, cost int64, mode store.Mode) {
			c := store.Charge{Policy: p, Key: string(key), Cost: cost, Age: time.Duration(max(0, age)), Mode: mode}
			if mode == store.Forget {
				c.Age = 0
			}
			if err := s.Take(t.Context(), []store.Charge{c}, make([]algorithms.Result, 1)); err == nil && cost >= 0 {
				t.Error("no answer is taken for one")
			}
		}
		take(key, cost, store.Enforce)
		take(key, 0, store.Forget)
		if !valid && names != nil {
			t.Errorf("%v is not valid, and is sent", p.Limit())
		}
		if !valid {
			return
		}
		names = nil
		take(key, 1, store.Enforce)
		take(other, 1, store.Enforce)
		take(key, 0, store.Forget)
		if len(names) != 3 || (names[0] == names[1]) != (string(key) == string(other)) || names[0] != names[2] {
			t.Errorf("%q and %q are sent as %q", key, other, names)
		}
	})
}

// checkThrottle does the module's sums in numbers that don't wrap.
func checkThrottle(t *testing.T, args []any) {
	var n [4]*big.Int
	for i, a := range args[2:6] {
		n[i] = big.NewInt(a.(int64))
	}
	burst, count, seconds, quantity := n[0], n[1], n[2], n[3]
	limit := new(big.Int).Add(burst, big.NewInt(1))
	if burst.Sign() < 0 || count.Sign() < 1 || seconds.Sign() < 1 || quantity.Sign() < 1 || quantity.Cmp(new(big.Int).Add(limit, big.NewInt(1))) > 0 {
		t.Errorf("%v", args)
		return
	}
	ns := new(big.Int).Mul(seconds, big.NewInt(1e9))
	if !ns.IsInt64() {
		t.Errorf("%v: the period wraps", args)
		return
	}
	interval := int64(float64(ns.Int64()) / float64(count.Int64()))
	if interval < 1000 {
		t.Errorf("%v: a unit each %d ns", args, interval)
	}
	full := new(big.Int).Mul(big.NewInt(interval), limit)
	full.Add(full, big.NewInt(interval))
	latest := new(big.Int).Add(full, big.NewInt(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()))
	if !latest.IsInt64() {
		t.Errorf("%v: the time wraps", args)
	}
}
