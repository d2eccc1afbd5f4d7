package memstore

import (
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// A sweep comes no sooner than shortest after the timer is set, and no later than
// longest, for a Config.Clock may jump.
const (
	shortest = int64(time.Second / time.Microsecond) // µs
	longest  = int64(time.Minute / time.Microsecond)
)

// sweeper is the timer that frees what has run out. It is set when the first key
// is added, and not at all where there is none.
type sweeper struct {
	at    atomic.Int64 // what it is set for, by the Store's clock in µs; 0 if it is not
	mu    sync.Mutex   // for setting it, and at
	timer *time.Timer
	fires time.Time // when it does, in real time
}

// wake sees to it that a key that runs out at expires is freed soon after.
func (s *Store) wake(expires, now int64) {
	want := max(expires, now+shortest)
	if s.sweep.serves(want, now) {
		return
	}
	s.sweep.mu.Lock()
	defer s.sweep.mu.Unlock()
	if s.sweep.serves(want, now) {
		return
	}
	isSet := s.sweep.at.Load() != 0
	s.sweep.at.Store(want)
	pause := time.Duration(min(want-now, longest)) * time.Microsecond
	fires := time.Now().Add(pause)
	if isSet && !fires.Before(s.sweep.fires) {
		return // it is never put off: under load, or a fast clock, it would be for ever
	}
	s.sweep.fires = fires
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

// serves tells whether the timer is set for a time that is still to come, and no
// later than want.
func (w *sweeper) serves(want, now int64) bool {
	at := w.at.Load()
	return at != 0 && at > now && at <= want
}

// sweepAll frees what has run out, a shard at a time.
func (s *Store) sweepAll() {
	s.sweep.mu.Lock()
	s.sweep.at.Store(0) // from here on, a key that is added sets the timer itself
	s.sweep.mu.Unlock()
	for i := range s.shards {
		for s.sweepShard(&s.shards[i]) {
		}
	}
}

// sweepShard does a batch of work and tells whether there is more.
func (s *Store) sweepShard(sh *shard) (more bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.clock()
	for range batch {
		if sh.mend(now) {
			continue
		}
		if len(sh.idle) > 0 && sh.idle[0].at <= now {
			s.forget(sh, sh.idle[0].slot)
			continue
		}
		sh.shrink(now)
		for _, h := range []heap{sh.idle, sh.busy} {
			if len(h) > 0 {
				s.wake(h[0].at, now)
			}
		}
		return false
	}
	return true
}
