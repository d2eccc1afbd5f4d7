// Package redistest starts the Redis servers that tests need: miniredis, and
// real ones as processes on free ports.
package redistest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/weirgo/weir/store/storetest"
)

// Mini starts a miniredis that lives by clock.
func Mini(t *testing.T, clock *storetest.Clock) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	var last time.Time
	clock.OnSet(func(now time.Time) {
		// Redis keeps the time at which a key runs out, miniredis the time that is
		// left: after a step back, that is more again.
		if back := last.Sub(now); back > 0 {
			for _, key := range m.Keys() {
				if ttl := m.TTL(key); ttl > 0 {
					m.SetTTL(key, ttl+back)
				}
			}
		}
		m.SetTime(now)
		last = now
	})
	return m
}
