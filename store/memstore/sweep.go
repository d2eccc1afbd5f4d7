package memstore

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

const (
	sweepPause = int64(time.Second / time.Microsecond) // the least between two sweeps, in µs
	sweepBatch = 1024                                  // the most keys freed under one lock
)

// sweeper is the timer that frees what has run out. It is set to when the first
// key does, and not at all where there is none.
type sweeper struct {
	at    atomic.Int64 // when it is set to, by the Store's clock in µs; 0 if it is not
	mu    sync.Mutex
	timer *time.Timer
}

// wake sees to it that a key that runs out at expires is freed soon after.
func (s *Store) wake(expires, now int64) {
	want := max(expires, now+sweepPause)
	if at := s.sweep.at.Load(); at != 0 && at <= want {
		return
	}
	s.sweep.mu.Lock()
	defer s.sweep.mu.Unlock()
	if at := s.sweep.at.Load(); at != 0 && at <= want {
		return
	}
	s.sweep.at.Store(want)
	pause := time.Duration(want-now) * time.Microsecond
	if s.sweep.timer != nil {
		s.sweep.timer.Reset(pause)
		return
	}
	// The timer does not keep the Store: one that is dropped is collected.
	w := weak.Make(s)
	s.sweep.timer = time.AfterFunc(pause, func() {
		if s := w.Value(); s != nil {
			s.sweepAll()
		}
	})
}

// sweepAll frees what has run out, a shard at a time.
func (s *Store) sweepAll() {
	s.sweep.at.Store(0) // from here on, a key that is added sets the timer itself
	for i := range s.shards {
		for s.sweepShard(&s.shards[i]) {
		}
	}
}

// sweepShard frees up to a batch of keys and tells whether there are more.
func (s *Store) sweepShard(sh *shard) (more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.clock()
	for range sweepBatch {
		first, ok := sh.nearest(now)
		if !ok || first.at > now {
			sh.shrink(now)
			if ok {
				s.wake(first.at, now)
			}
			if len(sh.busy) > 0 {
				s.wake(sh.busy[0].at, now)
			}
			return false
		}
		sh.remove(first.slot)
		s.live.Add(-1)
	}
	return true
}
