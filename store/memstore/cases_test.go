package memstore_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func open(_ *testing.T, c *storetest.Clock) store.Store {
	return memstore.New(memstore.Config{Clock: c.Now})
}

func TestRun(t *testing.T) {
	storetest.Run(t, open, storetest.Options{Algorithms: casetest.Algorithms()})
}

func TestVectors(t *testing.T) { casetest.Vectors(t, open) }

func TestCases(t *testing.T) {
	casetest.Cases(t, open)
	t.Run("MS-01", storesLeaveNothingBehind)
	t.Run("MS-02", func(t *testing.T) { underEach(t, oneTimeKeys) })
	t.Run("MS-04", reloads)
	t.Run("MS-05", func(t *testing.T) {
		for _, a := range casetest.Algorithms() {
			t.Run(casetest.Form(a), func(t *testing.T) { firstCalls(t, a) })
		}
	})
	t.Run("MS-06", sweepsAndCalls)
}

func policy(t testing.TB, name string, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func take(t testing.TB, s store.Store, p *algorithms.Policy, key string, cost int64) algorithms.Result {
	t.Helper()
	r, err := store.Take(context.Background(), s, p, key, cost)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// There is no Close, to be called twice or too early: a store that is dropped leaves
// nothing.
func storesLeaveNothingBehind(t *testing.T) {
	if _, ok := any(memstore.New(memstore.Config{})).(interface{ Close() error }); ok {
		t.Error("there is a Close: what do a second one and a charge after it do?")
	}
	p := policy(t, "p", algorithms.PerDay(1))
	before := runtime.NumGoroutine()
	var collected atomic.Int32
	for range 1000 {
		s := memstore.New(memstore.Config{})
		runtime.AddCleanup(s, func(struct{}) { collected.Add(1) }, struct{}{})
		take(t, s, p, "k", 1)
	}
	if after := runtime.NumGoroutine(); after > before+2 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
	// Cleanups run some time after a collection.
	for i := 0; collected.Load() < 990; i++ {
		if i == 1000 {
			t.Fatalf("%d of 1000 stores were collected", collected.Load())
		}
		runtime.GC()
		runtime.Gosched()
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// In short mode there are fewer keys.
func oneTimeKeys(t *testing.T, a algorithms.Algorithm) {
	keys := 1_000_000
	if testing.Short() {
		keys = 50_000
	}
	before := heap()
	s := memstore.New(memstore.Config{MaxKeys: 2 * keys})
	p := under(t, "p", a, algorithms.PerSecond(5))
	for i := range keys {
		take(t, s, p, strconv.Itoa(i), 1)
	}
	if s.Len() != keys {
		t.Errorf("%d keys kept of %d", s.Len(), keys)
	}
	time.Sleep(200*time.Millisecond + 3*time.Second)
	synctest.Wait()
	if s.Len() != 0 {
		t.Errorf("%d keys kept 3 s after the last ran out", s.Len())
	}
	for i := range 10 {
		take(t, s, p, strconv.Itoa(i), 1)
	}
	if s.Len() != 10 {
		t.Errorf("%d keys kept after ten calls", s.Len())
	}
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("the heap is %d MiB larger", grown>>20)
	}
	time.Sleep(3 * time.Second)
	synctest.Wait()
	if s.Len() != 0 {
		t.Errorf("%d keys kept at the end", s.Len())
	}
	runtime.KeepAlive(s)
}

func reloads(t *testing.T) {
	s := memstore.New(memstore.Config{MaxKeys: 50}) // half of the keys push out the others
	var p atomic.Pointer[algorithms.Policy]
	p.Store(policy(t, "p", algorithms.PerSecond(1000)))
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			for i := range 2000 {
				cost := int64(1)
				if i%10 == 0 {
					cost = 0
				}
				if n == 0 && i%5 == 0 {
					p.Store(policy(t, "p", algorithms.PerSecond(1000+int64(i))))
				}
				r, err := store.Take(context.Background(), s, p.Load(), strconv.Itoa((n+i)%100), cost)
				if err != nil || r.Limit < 1000 || r.Remaining < 0 {
					t.Errorf("%+v, %v", r, err)
				}
			}
		})
	}
	wg.Wait()
	if s.Len() > 50 {
		t.Errorf("%d keys kept of 50", s.Len())
	}
}

func firstCalls(t *testing.T, a algorithms.Algorithm) {
	const callers, limit = 500, 10
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	s := memstore.New(memstore.Config{})
	p := under(t, "p", a, algorithms.PerHour(limit))
	for round := range rounds {
		var passed atomic.Int32
		var wg sync.WaitGroup
		start := make(chan struct{})
		key := strconv.Itoa(round)
		for range callers {
			wg.Go(func() {
				<-start
				if !take(t, s, p, key, 1).Limited {
					passed.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		if passed.Load() != limit {
			t.Errorf("round %d: %d passed of a limit of %d", round, passed.Load(), limit)
		}
	}
}

func sweepsAndCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New(memstore.Config{})
		p := policy(t, "p", algorithms.Limit{Count: 1, Period: 50 * time.Millisecond})
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
		if n := passed.Load(); n != 100 {
			t.Errorf("%d passed", n)
		}
	})
}
