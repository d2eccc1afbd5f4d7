package algorithms_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/internal/twin"
	"github.com/weirgo/weir/store/storetest"
)

// Where a twin could differ by one, storetest.Twin, which walks at random, may not
// come by for long: at the last moment that counts, before 1970, at states that
// nobody made, and where products are as long as they get.
func TestTwinsAtTheEdges(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Mini(t, storetest.NewClock()).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, p := range twins(t) {
		script := twin.Parse(p.Algorithm().(algorithms.Scripted).Lua())
		var args []any
		var want, told []string
		for range 500 {
			s, now, cost, age := edge(rnd, p, script.Words)
			next, r := p.Decide(nil, s, now, cost, age)
			retry := r.RetryAfter.Microseconds()
			if r.RetryAfter == algorithms.Never {
				retry = -1
			}
			answer := fmt.Sprint(r.Limited, r.Limit, r.Remaining, retry, r.ResetAfter.Microseconds())
			if cost != 0 && !r.Limited {
				answer += strings.TrimRight(" "+strings.Trim(fmt.Sprint(next), "[]"), " ")
			}
			want = append(want, answer)
			told = append(told, fmt.Sprintf("%s %v, state %v at %d, cost %d, age %d", p.Algorithm().Name(), p.Limit(), s, now, cost, age))
			args = append(args, now, cost, age)
			for _, n := range p.Params()[:script.Params] {
				args = append(args, n)
			}
			for i := range script.Words {
				if i < len(s) {
					args = append(args, s[i])
				} else {
					args = append(args, "-")
				}
			}
		}
		reply, err := client.Eval(t.Context(), eachOf(script), nil, args...).Text()
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range strings.Split(reply, "\n") {
			if got != want[i] {
				t.Errorf("seed %d: %s\nthe script answers %s\nDecide answers     %s", seed, told[i], got, want[i])
				break
			}
		}
	}
}

// eachOf is a script that asks a twin for each of its arguments' questions.
func eachOf(script twin.Twin) string {
	width := 3 + script.Params + script.Words
	return fmt.Sprintf(`local decide, lines = %s, {}
for first = 1, #ARGV, %d do
  local input = {}
  for i = 1, %d do input[i] = tonumber(ARGV[first + i - 1]) end
  local r = {decide(unpack(input, 1, %d))}
  local words = {tostring(r[1])}
  for i = 2, (input[2] ~= 0 and not r[1]) and %d or 5 do
    if r[i] then words[#words + 1] = string.format('%%.0f', r[i]) end
  end
  lines[#lines + 1] = table.concat(words, ' ')
end
return table.concat(lines, '\n')`, script.Function(), width, width, width, 5+script.Words)
}

// twins are policies of each algorithm that has a twin of its own, under limits
// that make small numbers and the largest.
func twins(t *testing.T) (all []*algorithms.Policy) {
	limits := []limit{
		{Count: 5, Period: 7 * µs},
		{Count: 3, Period: 31 * time.Millisecond},
		{Count: 4, Period: time.Minute},
		{Count: 1<<50 - 27, Period: (1<<51 - 129) * µs},
	}
	for _, a := range []algorithms.Algorithm{
		algorithms.GCRA{}, algorithms.TokenBucket{Stepped: true}, algorithms.FixedWindow{},
		algorithms.FixedWindow{Aligned: true}, algorithms.FixedWindow{Aligned: true, Offset: 3 * µs}, algorithms.SlidingCounter{},
	} {
		for _, l := range limits {
			if p, err := algorithms.NewPolicy("p", a, l); err == nil {
				all = append(all, p)
			}
		}
	}
	for _, b := range []algorithms.Ban{
		{Strikes: 3, Within: 7 * µs, For: 9 * µs},
		{Strikes: 5, Within: time.Minute, For: time.Second},
		{Strikes: 2, Within: time.Second, For: time.Minute},
	} {
		p, err := b.Policy("p")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// edge is a state, and a charge at about a time when something changes with it.
// Params are what such times are made of.
func edge(rnd *rand.Rand, p *algorithms.Policy, width int) (s algorithms.State, now, cost, age int64) {
	one := func(of ...int64) int64 { return of[rnd.IntN(len(of))] }
	param := func() int64 { return p.Params()[rnd.IntN(len(p.Params()))] }
	_, r := p.Decide(nil, nil, 0, 0, 0)
	costs := []int64{1, 1, 1 + rnd.Int64N(r.Limit), r.Limit, r.Limit + 1, 0, -1, -1 - rnd.Int64N(r.Limit), -r.Limit}
	now = one(0, -1, 1_700_000_000_000_000, -1_700_000_000_000_000, rnd.Int64N(1<<52), -rnd.Int64N(1<<52))
	at := now
	for range rnd.IntN(6) {
		s, r = p.Decide(nil, s, now, one(costs...), 0)
		at = now
		now += max(0, one(0, 1, rnd.Int64N(param()+3), r.RetryAfter.Microseconds(), r.ResetAfter.Microseconds()-1))
	}
	if rnd.IntN(10) == 0 {
		s = make(algorithms.State, width)
		for i := range s {
			s[i] = one(0, 1, -1, 9, -9, at, r.Limit, r.Limit+1, param())
		}
	}
	_, r = p.Decide(nil, s, now, one(costs...), 0)
	move := one(0, param(), -param(), r.RetryAfter.Microseconds(), r.ResetAfter.Microseconds(), -rnd.Int64N(param()+3))
	now = min(max(now+move+one(0, 0, 1, -1), -1<<52), 1<<52)
	age = max(0, now-at) + one(0, 0, param(), param()/2, 10_000, min(param(), now-at)) + one(0, 0, 1, -1)
	return s, now, one(costs...), min(one(age, age, age, 0, -5, 1<<53), 1<<53)
}
