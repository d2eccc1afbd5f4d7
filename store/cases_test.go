package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// The field reports that speak of waiting, in memory.
func TestCases(t *testing.T) {
	t.Run("WR-01", func(t *testing.T) { synctest.Test(t, deadlineBeforeTheSlot) })
	t.Run("WR-02", func(t *testing.T) { synctest.Test(t, slotOfWhoWaited) })
}

func deadlineBeforeTheSlot(t *testing.T) {
	s, p, start := memstore.New(memstore.Config{}), everyTen(t), time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := store.Wait(ctx, s, p, "k", 1); err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := store.Wait(ctx, s, p, "k", 1); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("the second: %v", err)
	}
	cancel()
	if err := store.Wait(ctx, s, p, "k", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("with a ctx that is done: %v", err)
	}
	if took := time.Since(start); took != 0 {
		t.Errorf("all three took %v", took)
	}
	time.Sleep(10 * time.Second)
	if r := take(t, s, p, 1); r.Limited {
		t.Errorf("10 s later: %+v; something was taken", r)
	}
}

// There are no reservations here: no level goes below zero, and who waits holds
// nothing until the charge is made. That is what keeps the report's promise. The
// second two units are waited for and charged at 20, when they are there, and the
// state lives until the last of them has drained, 40 s after the start, as it
// would with a reservation at 0.
func slotOfWhoWaited(t *testing.T) {
	s, p, start := memstore.New(memstore.Config{}), limited(t, algorithms.Limit{Count: 1, Period: 10 * time.Second, Burst: 2}), time.Now()
	at := func(seconds time.Duration) { time.Sleep(time.Until(start.Add(seconds * time.Second))) }
	for _, want := range []time.Duration{0, 20 * time.Second} {
		if err := store.Wait(t.Context(), s, p, "k", 2); err != nil || time.Since(start) != want {
			t.Errorf("two are let in at %v, %v; want %v", time.Since(start), err, want)
		}
	}
	if r := take(t, s, p, 0); r.ResetAfter != 20*time.Second || s.Len() != 1 {
		t.Errorf("%d keys, %+v; want one to live until 40", s.Len(), r)
	}
	at(21)
	if r := take(t, s, p, 1); !r.Limited || r.RetryAfter != 9*time.Second {
		t.Errorf("at 21: %+v; the units due at 20 are sold twice", r)
	}
	at(31)
	if r := take(t, s, p, 1); r.Limited {
		t.Errorf("at 31: %+v", r)
	}
}
