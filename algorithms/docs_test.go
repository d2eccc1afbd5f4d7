package algorithms_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store/storetest"
)

// documented is a line of the table in the package's comment, with what its
// short forms stand for.
type documented struct {
	name      string
	algorithm algorithms.Algorithm // nil for a Ban
	numbers   column[int]          // most numbers that a key takes
	burst     string               // what Limit.Burst may be
	most      column[int64]        // most units in one Period
}

// column is a formula and its value.
type column[N int | int64] struct {
	text  string
	value func(l limit) N
}

func (d documented) policy(t *testing.T, l limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy("p", d.algorithm, l)
	if d.algorithm == nil {
		p, err = algorithms.Ban{Strikes: l.Count, Within: l.Period, For: 60 * l.Period}.Policy("p")
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (d documented) allows(l limit) bool {
	return l.Burst == 0 || d.burst == "any" || d.burst == "≥ C" && l.Burst >= l.Count
}

func table() []documented {
	two := column[int]{"2", func(limit) int { return 2 }}
	three := column[int]{"3", func(limit) int { return 3 }}
	units := column[int]{"C", func(l limit) int { return int(l.Count) }}

	bucket := column[int64]{"B + C − 1", func(l limit) int64 {
		if l.Burst == 0 {
			return 2*l.Count - 1
		}
		return l.Burst + l.Count - 1
	}}
	opened := column[int64]{"2C − 1", func(l limit) int64 { return 2*l.Count - 1 }}
	aligned := column[int64]{"2C", func(l limit) int64 { return 2 * l.Count }}
	exact := column[int64]{"C", func(l limit) int64 { return l.Count }}
	strikes := column[int64]{"2C − 2", func(l limit) int64 { return max(1, 2*l.Count-2) }}
	return []documented{
		{"GCRA", algorithms.GCRA{}, three, "any", bucket},
		{"LeakyBucket", algorithms.LeakyBucket{}, three, "any", bucket},
		{"LeakyBucket, Stepped", algorithms.LeakyBucket{Stepped: true}, three, "≥ C", bucket},
		{"TokenBucket", algorithms.TokenBucket{}, three, "any", bucket},
		{"TokenBucket, Stepped", algorithms.TokenBucket{Stepped: true}, three, "≥ C", bucket},
		{"FixedWindow", algorithms.FixedWindow{}, two, "none", opened},
		{"FixedWindow, Aligned", algorithms.FixedWindow{Aligned: true}, two, "none", aligned},
		{"SlidingCounter", algorithms.SlidingCounter{}, three, "none", opened},
		{"SlidingLog", algorithms.SlidingLog{}, units, "none", exact},
		{"Ban", nil, three, "none", strikes},
	}
}

// TestTable compares the tables in doc.go and docs/algorithms.md with what the
// other tests show.
func TestTable(t *testing.T) {
	for _, d := range table() {
		one, all := waits(t, d)
		cells := []string{d.name, d.numbers.text, d.burst, d.most.text, one.String(), all.String()}
		lines := map[string]string{
			"doc.go":                fmt.Sprintf("//\t%-22s%-9s%-8s%-12s%-10s%s\n", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]),
			"../docs/algorithms.md": "| " + strings.Join(cells, " | ") + " |\n",
		}
		for file, line := range lines {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), line) {
				t.Errorf("%s has not this line:\n%s", file, line)
			}
		}
	}
}

// TestMemory charges at random and finds as many numbers in a key's state as are
// documented, and never more.
func TestMemory(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	l := limit{Count: 40, Period: time.Minute}
	for _, d := range table() {
		p, now, state, most := d.policy(t, l), int64(0), algorithms.State(nil), 0
		for range 100_000 {
			now += rnd.Int64N(3_000_000)
			state, _ = p.Decide(nil, state, now, 1+rnd.Int64N(3), 0)
			most = max(most, len(state))
		}
		if want := d.numbers.value(l); most != want {
			t.Errorf("%s: %d numbers, documented are %d", d.name, most, want)
		}
	}
}

// TestBurst asks which bursts are allowed.
func TestBurst(t *testing.T) {
	for _, d := range table() {
		if d.algorithm == nil {
			continue // its policy has no other limit
		}
		for _, burst := range []int64{0, 1, 5, 6, 7} {
			l := limit{Count: 6, Period: time.Minute, Burst: burst}
			if _, err := d.algorithm.Params(l); (err == nil) != d.allows(l) {
				t.Errorf("%s, %v: %v; documented as allowed is %q", d.name, l, err, d.burst)
			}
		}
	}
}

// TestWaits takes the waits of the table at their word: who comes back then
// passes, and who comes a microsecond early is refused.
func TestWaits(t *testing.T) {
	for _, d := range table() {
		p, state := spent(t, d)
		one, all := waits(t, d)
		for cost, wait := range map[int64]time.Duration{1: one, 6: all} {
			then := secondOf(15) + wait.Microseconds()
			_, early := p.Decide(nil, state, then-1, cost, 0)
			_, inTime := p.Decide(nil, state, then, cost, 0)
			if !early.Limited || inTime.Limited {
				t.Errorf("%s, cost %d: a microsecond early %+v, in time %+v", d.name, cost, early, inTime)
			}
		}
	}
}

// waits is how long after the last of the six units are spent one more passes,
// and six at once.
func waits(t *testing.T, d documented) (one, all time.Duration) {
	t.Helper()
	p, state := spent(t, d)
	_, forOne := p.Decide(nil, state, secondOf(15), 1, 0)
	_, forAll := p.Decide(nil, state, secondOf(15), 6, 0)
	return forOne.RetryAfter, forAll.RetryAfter
}

// spent is a key that has six units a minute and spent them, one each second from
// ten seconds past a minute on.
func spent(t *testing.T, d documented) (p *algorithms.Policy, state algorithms.State) {
	t.Helper()
	p = d.policy(t, limit{Count: 6, Period: time.Minute})
	for second := 10; second <= 15; second++ {
		var r algorithms.Result
		if state, r = p.Decide(nil, state, secondOf(second), 1, 0); r.Limited {
			t.Fatalf("%s: refused at 0:%d: %+v", d.name, second, r)
		}
	}
	return p, state
}

// secondOf is a second of a minute of the clock, in µs.
func secondOf(second int) int64 {
	return storetest.NewClock().Now().Add(time.Duration(second) * time.Second).UnixMicro()
}

// smallLimits have Periods of a few microseconds, so that everything can be
// tried.
var smallLimits = []limit{
	{Count: 1, Period: 5 * time.Microsecond},
	{Count: 2, Period: 7 * time.Microsecond},
	{Count: 3, Period: 8 * time.Microsecond},
	{Count: 2, Period: 6 * time.Microsecond, Burst: 5},
	{Count: 3, Period: 7 * time.Microsecond, Burst: 4},
	{Count: 3, Period: 9 * time.Microsecond, Burst: 1}, // an interval: never more than Count
}

// TestOvershoot tries all that a caller can do in three Periods and more, and
// finds the most units that are let through in one Period: from a moment on until
// just before the same moment a Period later.
func TestOvershoot(t *testing.T) {
	for _, d := range table() {
		t.Run(d.name, func(t *testing.T) {
			for _, l := range smallLimits {
				if !d.allows(l) {
					continue
				}
				if got, want := overshoot(d.policy(t, l), l.Period.Microseconds()), d.most.value(l); got != want {
					t.Errorf("%v: %d in one Period, documented are %d", l, got, want)
				}
			}
		})
	}
}

// overshoot is the most units that p lets through in [t, t + span), for any t in
// three spans and any charges before and in it.
func overshoot(p *algorithms.Policy, span int64) (worst int64) {
	const start = 1 << 20 // in the middle of some window
	reached := map[string]algorithms.State{"": nil}
	for now := int64(start); now < start+3*span; now++ {
		s := search{p, now + span, map[string]int64{}}
		after := map[string]algorithms.State{}
		for _, state := range reached {
			worst = max(worst, s.most(state, now))
			for _, next := range choices(p, state, now) {
				after[fmt.Sprint(next)] = next
			}
		}
		reached = after
	}
	return worst
}

// search finds the most units until an end, from any state.
type search struct {
	p    *algorithms.Policy
	end  int64
	seen map[string]int64
}

func (s *search) most(state algorithms.State, now int64) int64 {
	if now == s.end {
		return 0
	}
	id := fmt.Sprint(now, state)
	best, ok := s.seen[id]
	if !ok {
		for cost, next := range choices(s.p, state, now) {
			best = max(best, int64(cost)+s.most(next, now+1))
		}
		s.seen[id] = best
	}
	return best
}

// choices are the states after a charge of 0, 1, 2, … units, as many as pass.
func choices(p *algorithms.Policy, state algorithms.State, now int64) []algorithms.State {
	_, look := p.Decide(nil, state, now, 0, 0)
	next := []algorithms.State{state}
	for cost := int64(1); cost <= look.Remaining; cost++ {
		s, _ := p.Decide(nil, state, now, cost, 0)
		next = append(next, s)
	}
	return next
}

// TestDocsShowExamples finds each line of Go in docs/algorithms.md in an example.
func TestDocsShowExamples(t *testing.T) {
	docs, err := os.ReadFile("../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_limits_test.go")
	if err != nil {
		t.Fatal(err)
	}
	inGo, shown := false, 0
	for line := range strings.Lines(string(docs)) {
		if strings.HasPrefix(line, "```") {
			inGo = line == "```go\n"
		} else if inGo {
			shown++
			if !strings.Contains(string(examples), strings.TrimSpace(line)+"\n") {
				t.Errorf("no example has %s", line)
			}
		}
	}
	if shown == 0 {
		t.Error("no Go is shown")
	}
}

// TestCalendar is a week that begins on Monday, UTC+8.
func TestCalendar(t *testing.T) {
	p, err := algorithms.NewPolicy("p", algorithms.FixedWindow{Aligned: true, Offset: 80 * time.Hour}, limit{Count: 5, Period: 7 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	zone := time.FixedZone("UTC+8", 8*60*60)
	friday := time.Date(2026, time.May, 1, 15, 4, 5, 0, zone)
	_, r := p.Decide(nil, nil, friday.UnixMicro(), 1, 0)
	if monday := time.Date(2026, time.May, 4, 0, 0, 0, 0, zone); !friday.Add(r.ResetAfter).Equal(monday) {
		t.Errorf("the week ends at %v, want %v", friday.Add(r.ResetAfter), monday)
	}
}
