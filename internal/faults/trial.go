package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// trial is stacks under load, on a bed.
type trial struct {
	*bed
	goroutines int // before the trial
	loads      []*load
	troubles   [][]trouble // of each load
	probes     int
}

func begin(b *bed, how []policy, pause time.Duration, seed uint64) *trial {
	t := &trial{bed: b, goroutines: len(goroutines()), troubles: make([][]trouble, len(how))}
	stacks := make([]*stack, len(how))
	for i, p := range how {
		stacks[i] = newStack(b, p)
	}
	for _, s := range stacks {
		t.loads = append(t.loads, drive(s, pause, seed))
	}
	time.Sleep(4 * pause) // until all workers are there
	for _, s := range stacks {
		if !t.await(s) {
			b.Fatalf("%s: limits are not right before there is any trouble", s.policy)
		}
	}
	return t
}

// strike makes trouble for a time, and waits until limiting is right again. It gives
// the time that this took each stack.
func (t *trial) strike(f fault, hold time.Duration) (recovery []time.Duration) {
	from := make([]time.Duration, len(t.loads))
	for i, l := range t.loads {
		from[i] = time.Since(l.start)
	}
	heal := f.strike(t.bed)
	time.Sleep(hold) // of real processes
	heal()
	healed := time.Now()
	recovery = make([]time.Duration, len(t.loads))
	var all sync.WaitGroup
	for i, l := range t.loads {
		t.probes++
		n := t.probes
		all.Go(func() {
			if t.awaitAs(l.stack, n) {
				recovery[i] = time.Since(healed)
			}
		})
	}
	all.Wait()
	for i, l := range t.loads {
		if recovery[i] == 0 {
			t.Fatalf("%s, %s: limits are not right within %v of its end", f.Name, l.stack.policy, patience)
		}
		t.troubles[i] = append(t.troubles[i], trouble{from[i], time.Since(l.start), f.losses, f.split})
	}
	return recovery
}

// patience is for how long limits may be wrong after the end of a trouble. It is far
// above what is documented, the cool-down and a decision, as machines are slow.
const patience = 30 * time.Second

func (t *trial) await(s *stack) bool {
	t.probes++
	return t.awaitAs(s, t.probes)
}

func (t *trial) awaitAs(s *stack, n int) bool {
	keys := 1
	if t.kind == cluster {
		keys = 8
	}
	end := time.Now().Add(patience)
	for try := 0; time.Now().Before(end); try++ {
		if s.right(context.Background(), fmt.Sprint("probe-", n, "-", try), keys) {
			return true
		}
		time.Sleep(10 * time.Millisecond) // until real servers are up
	}
	return false
}

// end stops the load and checks all answers.
func (t *trial) end() (records [][]record, wrong []string) {
	for i, l := range t.loads {
		records = append(records, l.end())
		for _, w := range check(l.stack.policy, records[i], t.troubles[i]) {
			wrong = append(wrong, fmt.Sprint(l.stack.policy, ": ", w))
		}
		l.stack.close(t.bed)
	}
	// Pools end in their own time.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		running, connections := goroutines(), t.open.Load()
		if len(running) <= t.goroutines && connections == 0 {
			return records, wrong
		}
		if time.Now().After(end) {
			return records, append(wrong, fmt.Sprintf("%d goroutines, %d before; %d connections\n%s",
				len(running), t.goroutines, connections, strings.Join(running, "\n\n")))
		}
	}
}

// goroutines are those that run, but for the proxies', which begin and end in their
// own time.
func goroutines() []string {
	buffer := make([]byte, 1<<22)
	all := strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n")
	return slices.DeleteFunc(all, func(g string) bool { return strings.Contains(g, "toxiproxy") })
}

// outcome is a line of the report.
type outcome struct {
	fault                     fault
	policy                    policy
	admitted, refused, errors int
	p99, worst, recovery      time.Duration
}

// after is how long the load goes on after a trouble: the period of the limits that are
// used up, within which each key must be admitted again, and half of it more.
const after = 1500 * time.Millisecond

// once makes a trial of one fault.
func once(t testing.TB, f fault, how []policy, pause, hold time.Duration, seed uint64) []outcome {
	trial := begin(newBed(t, f.on), how, pause, seed)
	recovery := trial.strike(f, hold)
	time.Sleep(after)
	records, wrong := trial.end()
	for _, w := range wrong {
		t.Errorf("%s: %s", f.Name, w)
	}
	var all []outcome
	for i, p := range how {
		o := during(records[i], trial.troubles[i][0])
		o.fault, o.policy, o.recovery = f, p, recovery[i]
		all = append(all, o)
	}
	return all
}
