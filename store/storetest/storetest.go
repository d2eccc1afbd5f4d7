// Package storetest holds algorithms and stores to their contracts: those of
// this project, and yours.
//
// [Laws] checks an [algorithms.Algorithm] by itself, on random traces. [Run]
// checks a [store.Store] against a model that is a few lines long and calls
// Decide. What fails quotes the sentence of the contract that was broken.
package storetest

import (
	"sync"
	"testing"
	"time"
)

// Clock is the time of a store under test. It stands still until it is set.
type Clock struct {
	mu    sync.Mutex
	now   time.Time
	onSet []func(time.Time)
}

// NewClock is a Clock that stands at a whole number of days, so that windows
// that open at the first charge and windows by the clock agree.
func NewClock() *Clock {
	return &Clock{now: time.UnixMicro(t0).UTC()}
}

// t0 is a multiple of every usual period since the Unix epoch, in µs.
const t0 = 20_000 * 86_400 * 1_000_000

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set sets the time, back too.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
	for _, f := range c.onSet {
		f(t)
	}
}

// Advance moves the time by d.
func (c *Clock) Advance(d time.Duration) { c.Set(c.Now().Add(d)) }

// OnSet has f called with the time, now and whenever it is set: for servers
// with a clock of their own.
func (c *Clock) OnSet(f func(time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onSet = append(c.onSet, f)
	f(c.now)
}

// reporter is the part of testing.TB that the checks use, so that the checks
// themselves can be tested.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

var _ reporter = (*testing.T)(nil)
