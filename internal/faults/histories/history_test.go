package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

// bench makes histories of one store under one subject.
type bench struct {
	subject
	store  store.Store
	clock  *storetest.Clock
	jump   func(set func()) // calls set, which sets the clock, when the store can bear it
	settle func()           // waits for what goes on after a call has failed; nil if nothing does
	fails  func(error) bool // whether a call may fail so; nil if none may
	hurry  bool             // a call of each history has a deadline that it may not keep
	groups bool             // charges come in groups, not each alone
	seed   uint64

	passed, refused, failed, met int           // calls, over all histories
	longest                      time.Duration // that a check took
}

// seed is that of WEIR_SEED, or a new one.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if s := os.Getenv("WEIR_SEED"); s != "" {
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("WEIR_SEED: %v", err)
		}
	}
	t.Logf("WEIR_SEED=%d", n)
	return n
}

// history makes history n, and gives the calls whose outcome tells something.
func (b *bench) history(t *testing.T, n int) []*operation {
	t.Helper()
	rnd := rand.New(rand.NewPCG(b.seed, uint64(n)))
	callers := callers
	if b.fails != nil {
		callers = fewer
	}
	plan := b.plan(rnd, n, callers, b.groups)
	ops := slices.Concat(plan...)
	if b.hurry { // one of them, since each that fails makes many more orders possible
		ops[rnd.IntN(len(ops))].within = time.Duration(1+rnd.IntN(500)) * time.Microsecond
	}

	// The clock is read somewhere from the last time that was set before the call to
	// the last one that was begun to be set before the return.
	now := b.clock.Now()
	times := []int64{now.UnixMicro()}
	var begun, set, moment atomic.Int64
	ticks := make(chan struct{}, len(ops))
	var clock, all sync.WaitGroup
	steps := moves(rnd, len(ops))
	for i := range steps {
		times = append(times, times[i]+steps[i].Microseconds())
	}
	clock.Go(func() {
		for range ticks {
			now := begun.Add(1)
			b.jump(func() { b.clock.Set(time.UnixMicro(times[now])) })
			set.Store(now)
		}
	})

	dead, cancel := context.WithCancel(t.Context())
	cancel()
	call := func(o *operation) {
		for range o.yields {
			runtime.Gosched()
		}
		if o.tick {
			ticks <- struct{}{}
		}
		ctx := t.Context()
		if o.dead {
			ctx = dead
		}
		if o.within > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, o.within)
			defer cancel()
		}
		first := set.Load()
		o.called = moment.Add(1)
		o.err = b.store.Take(ctx, o.charges, o.results)
		o.ended = moment.Add(1)
		o.times = times[first : begun.Load()+1]
	}
	start := make(chan struct{})
	for _, mine := range plan {
		all.Go(func() {
			<-start
			for _, o := range mine {
				call(o)
			}
		})
	}
	close(start)
	all.Wait()
	close(ticks)
	clock.Wait()
	if b.settle != nil {
		b.settle()
	}
	return b.outcomes(t, n, ops, times[:begun.Load()+1], moment.Load())
}

// outcomes counts the calls, and says what is known of those that failed: one whose context was done
// from the start has not happened, and any other may happen until the end.
func (b *bench) outcomes(t *testing.T, n int, ops []*operation, times []int64, end int64) (told []*operation) {
	t.Helper()
	slices.SortFunc(ops, func(a, b *operation) int { return int(a.called - b.called) })
	for i, o := range ops {
		if i > 0 && slices.ContainsFunc(ops[:i], func(p *operation) bool { return p.ended > o.called }) {
			b.met++
		}
	}
	for _, o := range ops {
		refused := false
		for i, c := range o.charges {
			refused = refused || o.err == nil && o.results[i].Limited && c.Mode != store.Shadow
		}
		switch {
		case o.dead:
			if !errors.Is(o.err, context.Canceled) {
				t.Fatalf("WEIR_SEED=%d, history %d: a call whose context was done: %v", b.seed, n, o)
			}
			continue
		case o.err != nil && (b.fails == nil || !b.fails(o.err)):
			t.Fatalf("WEIR_SEED=%d, history %d: %v", b.seed, n, o)
		case o.err != nil:
			b.failed++
			o.times = times[slices.Index(times, o.times[0]):]
			o.ended = end + 3
		case refused:
			b.refused++
		default:
			b.passed++
		}
		told = append(told, o)
	}
	return append(told, &operation{caller: callers, end: true, called: end + 1, ended: end + 2})
}

// patience is far longer than a check takes; without it, one that does not end would
// only be seen by the time-out of all tests.
const patience = 30 * time.Second

// linearizable tells whether there is an order that explains a history.
func (b *bench) linearizable(t *testing.T, ops []*operation) bool {
	t.Helper()
	begin := time.Now()
	defer func() { b.longest = max(b.longest, time.Since(begin)) }()
	verdict := porcupine.CheckOperationsTimeout(model(b.groups), records(ops), patience)
	if verdict == porcupine.Unknown {
		t.Fatalf("WEIR_SEED=%d: not decided within %v: this history is too large\n%s", b.seed, patience, text(ops))
	}
	return verdict == porcupine.Ok
}

// all wants so many histories to be linearizable.
func (b *bench) all(t *testing.T, histories int) {
	t.Helper()
	for n := range histories {
		ops := b.history(t, n)
		if b.linearizable(t, ops) {
			continue
		}
		m := model(b.groups)
		_, info := porcupine.CheckOperationsVerbose(m, records(ops), patience)
		page := filepath.Join(t.ArtifactDir(), "history.html")
		if err := porcupine.VisualizePath(m, info, page); err != nil {
			t.Error(err)
		}
		t.Fatalf("WEIR_SEED=%d, history %d is not linearizable; with -artifacts, it is drawn in %s\n%s", b.seed, n, page, text(ops))
	}
	t.Logf("%d histories: %d calls passed, %d were refused, %d failed; %d met another; no check took longer than %v", histories, b.passed, b.refused, b.failed, b.met, b.longest)
	if histories >= 20 && (b.passed == 0 || b.refused == 0 || b.met == 0 || b.fails != nil && b.failed == 0) {
		t.Error("these histories show nothing")
	}
}

// records are calls as porcupine takes them.
func records(ops []*operation) (rs []porcupine.Operation) {
	for _, o := range ops {
		rs = append(rs, porcupine.Operation{ClientId: o.caller, Input: o, Call: o.called, Return: o.ended})
	}
	return rs
}

// text is a history in lines: who called, from when to when, and what the clock may
// have shown, in µs since the first of them.
func text(ops []*operation) string {
	var s strings.Builder
	for _, o := range ops {
		if o.end {
			continue
		}
		var times []int64
		for _, now := range o.times {
			times = append(times, now-ops[0].times[0])
		}
		fmt.Fprintf(&s, "%d [%d %d] at %v: %v\n", o.caller, o.called, o.ended, times, o)
	}
	return s.String()
}
