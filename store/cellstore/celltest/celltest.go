// Package celltest adds CL.THROTTLE, the command of the module redis-cell, to a
// [miniredis] server: for tests of programs that count by it, without a server
// that has the module, and at the time that the test sets.
//
// It answers as redis-cell 0.5.0 on Redis 7.0 does, to the last bit: all five
// numbers with their rounding, integers that wrap, the text of every error, and
// the key that is left behind, a string with the time in Unix nanoseconds at which
// it is as good as new. So GET, PTTL, SCAN, FLUSHALL and the like see what they see
// there. Where the module aborts the whole server, so does celltest: see
// [Module.Aborted].
//
// # The client
//
// What miniredis asks of a client, it asks of one that sends CL.THROTTLE: AUTH, and
// no subscriptions. The client's own database counts, of 0 to 15. The command is
// atomic, also in MULTI and in scripts; there its reply passes through Lua, which
// rounds integers above 2⁵³, and PTTL reads a millisecond more where the time is a
// whole one.
//
// # What is different
//
//   - A key lives for 292 years at most, and runs out a nanosecond early where the
//     time is not that of [Module.SetTime].
//   - A reply to an argument with line breaks is that of Redis 7: they are blanks.
//   - COMMAND does not know the command, and there are no ACLs.
//   - It is made of commands of miniredis, which CommandCount counts and a hook
//     (SetPreHook) sees.
//
// The module: https://github.com/brandur/redis-cell
package celltest

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Module is redis-cell on one server. Its methods may be called at any time.
type Module struct {
	redis  *miniredis.Miniredis
	server *server.Server

	mu      sync.Mutex   // held by SetTime, and by a command that is not in a script; taken before redis's
	last    time.Time    // given to redis by SetTime
	nanos   atomic.Int64 // the time of SetTime, Unix
	script  any          // what makes a connection one of a script; guarded by redis's lock
	aborted atomic.Pointer[error]
}

// Register adds CL.THROTTLE to a running server. It is an error where that has the
// command. A server that is restarted has lost it.
//
// Time is the server's: that of SetTime, or the real time. So that keys run out by
// it, as those of Redis do, Register calls ClockTTL(true).
func Register(m *miniredis.Miniredis) (*Module, error) {
	if m == nil || m.Server() == nil {
		return nil, errors.New("celltest: the miniredis is not started")
	}
	module := &Module{redis: m, server: m.Server()}
	if err := module.server.Register("CL.THROTTLE", module.handle); err != nil {
		return nil, fmt.Errorf("celltest: %w", err)
	}
	m.ClockTTL(true)
	return module, nil
}

// databases is how many a Redis has that is not told otherwise.
const databases = 16

// SetTime sets the server's time as miniredis's does, which can be used as well,
// and adds two things. The module sees t to the nanosecond, and not to the
// microsecond. And after a step back keys run out when they would have, as those of
// Redis do; miniredis keeps how long they have left. t is from 1970 to 2262.
func (m *Module) SetTime(t time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nanos.Store(t.UnixNano())
	// Redis ends keys with the millisecond. For PTTL to say so, ours have to end a
	// nanosecond before: which then must not come.
	if t.Nanosecond()%1e6 == 999_999 {
		t = t.Add(-1)
	}
	if m.last.IsZero() {
		m.last = time.Now()
	}
	if back := m.last.Sub(t); back > 0 {
		m.lengthen(back)
	}
	m.last = t
	m.redis.SetTime(t)
}

// lengthen adds to the life of every key.
func (m *Module) lengthen(d time.Duration) {
	for i := range databases {
		db := m.redis.DB(i) // takes off what has passed until now
		for _, key := range db.Keys() {
			if left := db.TTL(key); left > 0 {
				db.SetTTL(key, min(left, math.MaxInt64-d)+d)
			}
		}
	}
}

// Aborted says why the module has aborted the server; nil if it has not. The module
// does so over a key that holds anything but its own number, and over a key or
// another argument that is not valid UTF-8.
//
// Clients see what they see of a Redis that has died: all connections are closed,
// without a reply, and no more are accepted. Those of Dial, to a server without a
// listener, are closed by their next command. A test whose connections break should
// ask. Close and Restart start the server again, with its keys and without
// CL.THROTTLE.
func (m *Module) Aborted() error {
	if err := m.aborted.Load(); err != nil {
		return *err
	}
	return nil
}
