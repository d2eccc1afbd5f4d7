package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/twin"
)

// Eval runs a Lua script with arguments on a server, as EVAL does with no keys,
// and returns the text that the script returns.
type Eval func(script string, args []string) (string, error)

// TwinOptions is what [Twin] checks with. The zero TwinOptions are good ones.
type TwinOptions struct {
	Steps  int                // random steps; 0 means 200 000, and a tenth in short mode
	Limits []algorithms.Limit // nil means those of DefaultLimits that the algorithm accepts
	Seed   uint64             // 0 means a new one, which failures name
}

// twinBatch is how many steps one script makes.
const twinBatch = 250

// Twin checks that an algorithm and its script are the same function: next state
// and result are equal to the last bit, on random states, with a clock that also
// steps back, limits that change, and costs from below nothing to above the
// capacity. No store takes part: state and time are arguments.
func Twin(t *testing.T, a algorithms.Scripted, eval Eval, o TwinOptions) {
	if o.Steps == 0 {
		o.Steps = 200_000
		if testing.Short() {
			o.Steps /= 10
		}
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	checkTwin(t, a, eval, o)
}

func checkTwin(r reporter, a algorithms.Scripted, eval Eval, o TwinOptions) {
	r.Helper()
	w := &twinWalk{rnd: rand.New(rand.NewPCG(o.Seed, 2)), a: a, twin: twin.Parse(a.Lua()), now: t0}
	w.limits = Spec{Algorithm: a, Limits: o.Limits}.limits()
	script := w.script()
	for done := 0; done < o.Steps; done += twinBatch {
		var args, want, told []string
		for range twinBatch {
			arg, answer, tell := w.step()
			args, want, told = append(args, arg...), append(want, answer), append(told, tell)
		}
		reply, err := eval(script, args)
		if err != nil {
			r.Fatalf("after %d steps, seed %d: %v", done, o.Seed, err)
		}
		got := strings.Split(reply, "\n")
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				r.Errorf("step %d, seed %d: %s\nthe script answers %q\nDecide answers     %q", done+i, o.Seed, told[i], got[min(i, len(got)-1)], want[i])
				return
			}
		}
	}
}

// twinWalk walks a key through random limits, times and costs.
type twinWalk struct {
	rnd    *rand.Rand
	a      algorithms.Scripted
	twin   twin.Twin
	limits []algorithms.Limit

	limit  algorithms.Limit
	params []int64
	state  algorithms.State
	now    int64
	last   algorithms.Result
}

// script makes the steps of a batch. Each has now, cost, age, the params, and
// the words of the state or "-".
func (w *twinWalk) script() string {
	width := 3 + w.twin.Params + w.twin.Words
	return fmt.Sprintf(`local decide = %s
local lines = {}
for first = 1, #ARGV, %d do
  local input = {}
  for i = 1, %d do input[i] = tonumber(ARGV[first + i - 1]) end
  local r = {decide(unpack(input, 1, %d))}
  local made, words = input[2] ~= 0 and not r[1], {}
  r[1] = r[1] and 1 or 0
  for i = 1, made and %d or 5 do
    if r[i] then words[#words + 1] = string.format('%%.0f', r[i]) end
  end
  lines[#lines + 1] = table.concat(words, ' ')
end
return table.concat(lines, '\n')`, w.twin.Function(), width, width, width, 5+w.twin.Words)
}

// step is the arguments of the next step, the answer of Decide, and the step in
// words. The walk goes on from what Decide made of the state.
func (w *twinWalk) step() (args []string, answer, told string) {
	if w.params == nil || w.rnd.IntN(20) == 0 {
		w.limit = w.limits[w.rnd.IntN(len(w.limits))]
		w.params, _ = w.a.Params(w.limit) // limits are those it accepts
	}
	switch w.rnd.IntN(100) {
	case 0, 1:
		w.state = nil
	case 2: // what somebody may have written by hand
		w.state = make(algorithms.State, w.twin.Words)
		for i := range w.state {
			w.state[i] = []int64{0, 1, w.now}[w.rnd.IntN(3)]
		}
	}
	w.move()
	capacity := max(1, w.last.Limit)
	costs := []int64{1, 1, 1, 0, -3 + w.rnd.Int64N(capacity+5), 1 + w.rnd.Int64N(capacity), -w.rnd.Int64N(capacity + 1), capacity, capacity + 1, 1 << 53, -1 << 53}
	cost := costs[w.rnd.IntN(len(costs))]
	age := int64(0)
	if cost < 0 {
		age = []int64{0, w.rnd.Int64N(1 + w.last.ResetAfter.Microseconds()), w.rnd.Int64N(2_000_000), 1 << 53}[w.rnd.IntN(4)]
	}
	before := w.state
	next, r := w.a.Decide(nil, w.state, w.now, w.params, cost, age)
	made := cost != 0 && !r.Limited

	for _, n := range append([]int64{w.now, cost, age}, w.params[:w.twin.Params]...) {
		args = append(args, strconv.FormatInt(n, 10))
	}
	for i := range w.twin.Words {
		if i < len(before) {
			args = append(args, strconv.FormatInt(before[i], 10))
		} else {
			args = append(args, "-")
		}
	}
	answer = w.answer(r, made, next)
	told = fmt.Sprintf("%s %v, state %v at %d, cost %d, age %d", w.a.Name(), w.limit, before, w.now, cost, age)
	w.state, w.last = next, r
	return args, answer, told
}

// answer is how the script writes r. The next state counts only where a charge
// is made.
func (w *twinWalk) answer(r algorithms.Result, made bool, next algorithms.State) string {
	retry := r.RetryAfter.Microseconds()
	if r.RetryAfter == algorithms.Never {
		retry = -1
	}
	limited := int64(0)
	if r.Limited {
		limited = 1
	}
	numbers := []int64{limited, r.Limit, r.Remaining, retry, r.ResetAfter.Microseconds()}
	if made {
		numbers = append(numbers, next...)
	}
	var text []string
	for _, n := range numbers {
		text = append(text, strconv.FormatInt(n, 10))
	}
	return strings.Join(text, " ")
}

// move moves the clock to where something may happen, back at times.
func (w *twinWalk) move() {
	retry, reset := max(0, w.last.RetryAfter.Microseconds()), w.last.ResetAfter.Microseconds()
	moves := []int64{0, 1, 999, retry, retry - 1, reset, reset - 1, w.rnd.Int64N(1 + reset), w.rnd.Int64N(3_000_000), -1, -w.rnd.Int64N(1 + reset), -w.rnd.Int64N(1 + 3*(reset/2)), int64(math.MaxInt32) * w.rnd.Int64N(100)}
	if now := w.now + moves[w.rnd.IntN(len(moves))]; now > 0 && now < 1<<51 {
		w.now = now
	} else {
		w.now = t0
	}
}
