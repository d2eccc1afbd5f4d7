package resilient_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/resilient"
	"github.com/weirgo/weir/store/storetest"
)

// What a DenyCache answers from memory is less than a store knows; all else of the
// contract holds, and of the whole chain too. The keys are those of the store, each
// by itself, also where a denial is remembered.
func TestRun(t *testing.T) {
	const (
		rest   = "what it remembers as denied it refuses without asking about the rest of the group"
		timing = "it remembers denials by the real clock, and the test's is another"
		lifted = "a policy of another pointer forgets for all, and a denial shows until its age is over"
	)
	for name, around := range map[string]func(store.Store) store.Store{
		"DenyCache": func(s store.Store) store.Store { return store.DenyCache(s, time.Hour, 1<<16) },
		"the chain": func(s store.Store) store.Store {
			return resilient.New(s, resilient.Config{Replicas: 1, Timeout: time.Hour, DenyFor: time.Hour})
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(_ *testing.T, clock *storetest.Clock) store.Store {
				return around(memstore.New(memstore.Config{Clock: clock.Now}))
			}, storetest.Options{Except: map[string]string{
				"group": rest, "modes": rest, "concurrent": rest,
				"forget": lifted,
				"bounds": timing, "random groups": timing, "random limits": timing, "clock back": timing,
			}})
		})
	}
}
