package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/algorithms"
)

var silent = slog.New(slog.DiscardHandler)

// workers is how many goroutines ask at the same time, half of them each replica.
const workers = 64

// target is a key under a policy. There are two for each limit that is used up.
type target struct {
	policy *algorithms.Policy
	key    string
}

var targets = func() (all []target) {
	for _, p := range hot {
		for k := range 2 {
			all = append(all, target{p, fmt.Sprint(p.Name(), k)})
		}
	}
	return append(all, target{quiet, "quiet"})
}()

// record is one answer. Times are since the load began.
type record struct {
	from, to time.Duration
	status   int16
	target   int8
	served   int8
	decided  bool
	denied   bool
	left     bool // the caller did, before the answer
}

// load is the requests of all workers to one stack.
type load struct {
	stack   *stack
	start   time.Time
	stop    atomic.Bool
	workers sync.WaitGroup
	records [workers][]record
}

// drive has each worker ask about once in the time pause.
func drive(s *stack, pause time.Duration, seed uint64) *load {
	l := &load{stack: s, start: time.Now()}
	for w := range workers {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		l.workers.Go(func() {
			time.Sleep(time.Duration(random.Int64N(int64(4 * pause)))) // or all dial at once
			for !l.stop.Load() {
				l.records[w] = append(l.records[w], l.one(w%replicas, random))
				// The load is a fixed one in real time, as servers break in real time.
				time.Sleep(pause/2 + time.Duration(random.Int64N(int64(pause))))
			}
		})
	}
	return l
}

func (l *load) one(replica int, random *rand.Rand) record {
	ctx := context.Background()
	if random.IntN(16) == 0 { // some callers are in a hurry
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(2000))*time.Microsecond)
		defer cancel()
	}
	i := random.IntN(len(targets))
	from := time.Since(l.start)
	one := l.stack.ask(ctx, replica, targets[i].policy, targets[i].key)
	return record{
		from: from, to: time.Since(l.start), target: int8(i),
		status: int16(one.status), served: int8(one.served), decided: one.decided, denied: one.denied,
		left: one.status == http.StatusServiceUnavailable && over(ctx),
	}
}

// over tells whether the caller's deadline has passed.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// end stops the workers and gives all records.
func (l *load) end() (all []record) {
	l.stop.Store(true)
	l.workers.Wait()
	for w := range l.records {
		all = append(all, l.records[w]...)
	}
	return all
}
