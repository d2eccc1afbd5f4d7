package memstore_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store/memstore"
)

// The field reports on an algorithm's state in memory, beside those of casetest.
func TestCasesOfAlgorithms(t *testing.T) {
	t.Run("MS-06", func(t *testing.T) { underEach(t, sweepsForgetNothing, "ban") })
	t.Run("SL-05", refusalsTakeNoRoom)
	t.Run("TB-10", func(t *testing.T) {
		underEach(t, sweepsKeepSlowDebt, "ban", "fixed-window", "sliding-counter", "sliding-log")
	})
}

// underEach runs a test in a bubble under all algorithms but some, which have
// other numbers.
func underEach(t *testing.T, test func(*testing.T, algorithms.Algorithm), but ...string) {
	for _, a := range casetest.Algorithms() {
		if !slices.Contains(but, a.Name()) {
			t.Run(casetest.Form(a), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, a) })
			})
		}
	}
}

func under(t *testing.T, name string, a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func refusalsTakeNoRoom(t *testing.T) {
	now := time.Unix(1_728_000_000, 0)
	s := memstore.New(memstore.Config{Clock: func() time.Time { return now }})
	p := under(t, "p", algorithms.SlidingLog{}, algorithms.PerHour(10))
	before := int64(0)
	for i := range 100_000 {
		if i == 10 {
			before = heap()
		}
		if r := take(t, s, p, "k", 1); r.Limited != (i >= 10) {
			t.Fatalf("call %d: %+v", i+1, r)
		}
	}
	// The runtime's own needs are in there, but not a byte for each call.
	if grown := heap() - before; grown > 64<<10 {
		t.Errorf("the heap is %d bytes larger", grown)
	}
	if s.Len() != 1 {
		t.Errorf("%d keys kept", s.Len())
	}
}

// Keys that run out each second keep the sweeps coming.
func sweepsKeepSlowDebt(t *testing.T, a algorithms.Algorithm) {
	s := memstore.New(memstore.Config{})
	p, short := under(t, "p", a, algorithms.Limit{Count: 1, Period: 1000 * time.Second, Burst: 100}), under(t, "short", a, algorithms.PerSecond(1))
	for range 100 {
		take(t, s, p, "k", 1)
	}
	sleep := func(seconds int) {
		for range seconds {
			take(t, s, short, "other", 1)
			time.Sleep(time.Second)
		}
	}
	sleep(600)
	if r := take(t, s, p, "k", 1); !r.Limited || r.RetryAfter != 400*time.Second {
		t.Errorf("at 600: %+v", r)
	}
	sleep(400)
	if r := take(t, s, p, "k", 1); r.Limited {
		t.Errorf("at 1000: %+v", r)
	}
}

func sweepsForgetNothing(t *testing.T, a algorithms.Algorithm) {
	s := memstore.New(memstore.Config{})
	p := under(t, "p", a, algorithms.Limit{Count: 1, Period: 50 * time.Millisecond})
	var passed atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if !take(t, s, p, "k", 1).Limited {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	least := int32(95)
	if a.Name() == "sliding-counter" {
		least = 48
	}
	if n := passed.Load(); n < least || n > 101 {
		t.Errorf("%d passed; want %d to 101", n, least)
	}
}
