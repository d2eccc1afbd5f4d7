package cellstore_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/cellstore"
	"github.com/weirgo/weir/store/cellstore/celltest"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// server is a miniredis with the module and a store on it.
type server struct {
	*testing.T
	redis *miniredis.Miniredis
	clock *storetest.Clock
	store *cellstore.Store
}

func newServer(t *testing.T, clock *storetest.Clock) *server {
	t.Helper()
	m := redistest.Mini(t, clock)
	module, err := celltest.Register(m)
	if err != nil {
		t.Fatal(err)
	}
	clock.OnSet(module.SetTime)
	t.Cleanup(func() {
		if err := module.Aborted(); err != nil {
			t.Errorf("the module has aborted the server: %v", err)
		}
	})
	client := redis.NewClient(&redis.Options{Addr: m.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return &server{t, m, clock, newStore(t, client)}
}

func open(t *testing.T, clock *storetest.Clock) store.Store { return newServer(t, clock).store }

// What the module can't do is named; all else of the contract holds.
func TestRun(t *testing.T) {
	const groups = "the module decides one charge at a time; store.Sequential makes groups of that"
	storetest.Run(t, open, storetest.Options{
		Resolution: time.Second,
		// The module cuts the time of a unit to whole nanoseconds. Of a time that needs
		// no cutting it counts exactly.
		Limits: []algorithms.Limit{
			algorithms.PerSecond(5), {Count: 8, Period: 3 * time.Second}, algorithms.PerMinute(30).WithBurst(16),
			algorithms.PerSecond(10).WithBurst(1), {Count: 12, Period: 24 * time.Hour}, {Count: 2, Period: 10 * time.Millisecond},
		},
		Except: map[string]string{
			"group":            groups,
			"modes":            groups,
			"forget in groups": groups,
			"concurrent":       groups,
			"changed limits":   "the module keeps time, not units",
			"random limits":    "the module keeps time, not units",
			"clock back":       "what is ahead of the module's clock is never stale",
		},
	})
}

func (s *server) take(p *algorithms.Policy, key string, cost int64) algorithms.Result {
	s.Helper()
	r, err := store.Take(s.Context(), s.store, p, key, cost)
	if err != nil {
		s.Fatalf("key %q, cost %d: %v", key, cost, err)
	}
	return r
}

// The field reports that speak of redis-cell.
func TestCases(t *testing.T) {
	t.Run("RC-01", func(t *testing.T) {
		a := &answering{reply: ints(0, 16, 15, -1, 2)}
		w := ask(t, newStore(t, a), algorithms.PerMinute(30).WithBurst(16))
		if want := "cl.throttle weir-cell:{k}:p:gcra:cell 15 30 60 1"; len(a.sent) != 1 || a.sent[0] != want {
			t.Errorf("sent %q, want %q", a.sent, want)
		}
		for name, want := range map[string]string{"X-RateLimit-Limit": "16", "X-RateLimit-Remaining": "15", "X-RateLimit-Reset": "2", "Retry-After": ""} {
			if got := w.Header().Get(name); w.Code != 200 || got != want {
				t.Errorf("%d, %s: %q, want %q", w.Code, name, got, want)
			}
		}
		s := newServer(t, storetest.NewClock())
		p := gcra(t, "live", algorithms.PerMinute(30).WithBurst(16))
		for i := range 17 {
			if r := s.take(p, "k", 1); r.Limited != (i == 16) {
				t.Errorf("call %d: %+v", i+1, r)
			}
		}
	})
	t.Run("RC-03", func(t *testing.T) {
		for _, a := range []*answering{
			{err: replyError("ERR unknown command 'CL.THROTTLE'")},
			{err: replyError("ERR Cell error: cannot parse integer from empty string")},
			{err: redis.Nil},
			{reply: ints(0, 5)},
		} {
			if w := ask(t, newStore(t, a), algorithms.PerMinute(5)); w.Code != http.StatusServiceUnavailable || w.Header().Get("X-RateLimit-Limit") != "" {
				t.Errorf("%v: %d, %v", a, w.Code, w.Header())
			}
		}
		if w := ask(t, newStore(t, &answering{reply: []any{"0", "5", "4", "-1", "1"}}), algorithms.PerMinute(5)); w.Code != 200 {
			t.Errorf("numbers as text: %d", w.Code)
		}
	})
	t.Run("RC-04", func(t *testing.T) {
		s := newServer(t, storetest.NewClock())
		p := gcra(t, "p", algorithms.PerMinute(5))
		for i, want := range []struct {
			cost, remaining int64
			limited         bool
		}{{1, 4, false}, {-1, 5, false}, {-1, 5, false}, {5, 0, false}, {1, 0, true}} {
			if r := s.take(p, "k", want.cost); r.Remaining != want.remaining || r.Limited != want.limited {
				t.Errorf("step %d: %+v", i+1, r)
			}
		}
	})
}

// ask is the answer of a server that counts one key.
func ask(t *testing.T, s store.Store, l algorithms.Limit) *httptest.ResponseRecorder {
	t.Helper()
	m, err := middleware.New(middleware.Config{Store: s, Rules: []middleware.Rule{{Policy: gcra(t, "p", l), Key: keyfunc.Const("k")}}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w
}

// Give-backs are those of GCRA in memory, whatever their age, to the microsecond
// and with a drained key at the end; and no key is left without an end.
func TestGiveBacks(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	clock := storetest.NewClock()
	s := newServer(t, clock)
	inMemory := memstore.New(memstore.Config{Clock: clock.Now})
	p := gcra(t, "p", algorithms.PerMinute(30).WithBurst(8)) // 2 s a unit
	for step := range 3000 {
		clock.Advance(time.Duration(rnd.Int64N(2_500_000)) * time.Microsecond)
		c := []store.Charge{{Policy: p, Key: "k", Cost: 1 + rnd.Int64N(3)}}
		if rnd.IntN(2) == 0 {
			c[0].Cost, c[0].Age = -rnd.Int64N(10), time.Duration(rnd.Int64N(3_000_000))*time.Microsecond
		}
		got, want := make([]algorithms.Result, 1), make([]algorithms.Result, 1)
		if err := errors.Join(s.store.Take(t.Context(), c, got), inMemory.Take(t.Context(), c, want)); err != nil {
			t.Fatal(err)
		}
		if got[0].Remaining != want[0].Remaining || got[0].Limited != want[0].Limited || got[0].ResetAfter-want[0].ResetAfter > time.Second || want[0].ResetAfter-got[0].ResetAfter > time.Millisecond {
			t.Fatalf("seed %d, step %d, cost %d, age %v: %+v, in memory %+v", seed, step, c[0].Cost, c[0].Age, got[0], want[0])
		}
		for _, key := range s.redis.Keys() {
			if life := s.redis.TTL(key); life <= 0 || life > 16*time.Second {
				t.Fatalf("seed %d, step %d: %s lives for %v", seed, step, key, life)
			}
		}
	}
	s.take(p, "new", -3)
	s.take(p, "new", 0)
	if s.redis.Exists("weir-cell:{new}:p:gcra:cell") {
		t.Error("a give-back or a look makes a key")
	}
}

// Keys that the module would end the server over are sent as other keys.
func TestKeys(t *testing.T) {
	s := newServer(t, storetest.NewClock())
	p := gcra(t, "p", algorithms.PerMinute(3))
	for _, key := range []string{"\xff", "%FF", "%25FF", "\xfe", "{\xff}", "a\x00b", "é", "\xed\xa0\x80", "\r\n"} {
		if r := s.take(p, key, 1); r.Remaining != 2 {
			t.Errorf("%q: %+v", key, r)
		}
	}
}

func TestSequential(t *testing.T) {
	s := newServer(t, storetest.NewClock())
	q := store.Sequential(s.store)
	minute, hour := gcra(t, "minute", algorithms.PerMinute(1)), gcra(t, "hour", algorithms.PerHour(3))
	if err := q.Validate(minute, hour); err != nil {
		t.Fatal(err)
	}
	group := []store.Charge{{Policy: hour, Key: "k", Cost: 1}, {Policy: minute, Key: "k", Cost: 1}}
	for i, left := range []int64{2, 2, 2} {
		rs := make([]algorithms.Result, 2)
		if err := q.Take(t.Context(), group, rs); err != nil {
			t.Fatal(err)
		}
		if rs[1].Limited != (i > 0) || rs[0].Limited || rs[0].Remaining != left && i == 0 {
			t.Errorf("group %d: %+v", i+1, rs)
		}
	}
	// The refused groups gave back what they took, but for the time it took.
	s.clock.Advance(time.Second)
	if r := s.take(hour, "k", 0); r.Remaining != 2 {
		t.Errorf("%d of 3 an hour are left, and one was taken", r.Remaining)
	}
}

// A decision whose reply does not come is not sent again.
func TestAtMostOnce(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var decisions atomic.Int32
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buffer := make([]byte, 1<<16)
				for {
					n, err := c.Read(buffer)
					if err != nil {
						return
					}
					if text := string(buffer[:n]); strings.Contains(text, "cl.throttle") || strings.Contains(text, "evalsha") {
						decisions.Add(1)
						continue // and never answers
					}
					_, _ = c.Write([]byte("-ERR unknown command\r\n"))
				}
			}()
		}
	}()
	client := redis.NewClient(&redis.Options{Addr: ln.Addr().String(), ContextTimeoutEnabled: true, ReadTimeout: 30 * time.Millisecond, MaxRetries: 5, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	s, p := newStore(t, client), gcra(t, "p", algorithms.PerMinute(1))
	for _, c := range []store.Charge{{Cost: 1}, {Cost: -1}, {Mode: store.Forget}} {
		c.Policy, c.Key = p, "k"
		decisions.Store(0)
		if err := s.Take(t.Context(), []store.Charge{c}, make([]algorithms.Result, 1)); err == nil || decisions.Load() != 1 {
			t.Errorf("%+v: %v; sent %d times", c, err, decisions.Load())
		}
	}
}
