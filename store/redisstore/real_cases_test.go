package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// server is a Redis under a case: an empty one that lives by clock, a store on
// it, and a client that looks behind the store's back.
type server struct {
	*testing.T
	clock  *storetest.Clock
	store  *redisstore.Store
	client *redis.Client
}

// The field reports that speak of Redis, and of one server.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		id  string
		run func(*server)
	}{
		{"FW-03", windowEndsOnTime},
		{"FW-06", everyKeyRunsOut},
		{"FW-09", lifeInMilliseconds},
		{"GC-06", statesAreDigits},
		{"LB-02", noFractionIsLost},
		{"RL-01", scriptsAreForgotten},
		{"RL-06", foreignData},
		{"RL-06/another algorithm", anotherAlgorithm},
		{"RL-07", serverTime},
		{"RL-09", lifeIsWhole},
		{"RL-10", shortWindows},
		{"RL-11", longWindows},
		{"SL-01", membersAreUnits},
		{"SL-05", refusalsAreNotKept},
		{"TB-04", refusedCostPinsNothing},
		{"TB-15", looksMakeNoKey},
	} {
		t.Run(c.id, func(t *testing.T) {
			t.Run("miniredis", func(t *testing.T) {
				clock := storetest.NewClock()
				c.run(newServer(t, clock, redistest.Mini(t, clock).Addr()))
			})
			t.Run("redis", func(t *testing.T) {
				t.Parallel()
				clock := storetest.NewClock()
				c.run(newServer(t, clock, redistest.StartAt(t, clock).Addr))
			})
		})
	}
	for _, c := range []shared{
		{"SL-04", []algorithms.Algorithm{algorithms.SlidingLog{}}, 5, 50},
		{"WR-03", casetest.Algorithms(), 50, 100},
	} {
		t.Run(c.id, c.run)
	}
}

// One script asks for the time and then writes. Of the servers that the case
// names, these two are run; docs/redis.md says what is known of others.
func serverTime(s *server) {
	for _, a := range casetest.Algorithms() {
		p, q := s.policy(a, algorithms.PerMinute(5)), gcra(s.T, "q", algorithms.PerMinute(5))
		for _, cost := range []int64{1, 2, 0} { // each is a script of its own, or a part of one
			if _, err := store.Take(s.Context(), s.store, p, "k", cost); err != nil {
				s.Errorf("%s, cost %d: %v", casetest.Form(a), cost, err)
			}
		}
		if _, err := takeGroup(s.store, casetest.Form(a), p, q); err != nil {
			s.Errorf("%s: %v", casetest.Form(a), err)
		}
	}
}

func newServer(t *testing.T, clock *storetest.Clock, addr string) *server {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return &server{t, clock, newStore(t, addr, redisstore.Config{}), client}
}

// do sends a command, which must not fail.
func (s *server) do(args ...any) any {
	s.Helper()
	v, err := s.client.Do(context.Background(), args...).Result()
	if err != nil {
		s.Fatalf("%v: %v", args, err)
	}
	return v
}

// life is how long a key lives on. Without an end it is -1 ms, without the key
// -2 ms.
func (s *server) life(key string) time.Duration {
	s.Helper()
	return time.Duration(s.do("PTTL", key).(int64)) * time.Millisecond
}

// content is what a key holds, of whatever type.
func (s *server) content(key string) any {
	s.Helper()
	switch s.do("TYPE", key) {
	case "list":
		return s.do("LRANGE", key, 0, -1)
	case "hash":
		return s.do("HGETALL", key)
	case "zset":
		return s.do("ZRANGE", key, 0, -1, "WITHSCORES")
	case "none":
		return nil
	}
	return s.do("GET", key)
}

// keys are all there are.
func (s *server) keys() []string {
	s.Helper()
	keys, err := s.client.Keys(context.Background(), "*").Result()
	if err != nil {
		s.Fatal(err)
	}
	return keys
}

// A state is stored as plain digits, to the last of them.
func statesAreDigits(s *server) {
	for i, l := range []algorithms.Limit{
		algorithms.PerSecond(10_000).WithBurst(1),
		algorithms.PerDay(1),
		{Count: 1, Period: 2_500_000_000 * time.Second, Burst: 3},
		{Count: 1_000_000, Period: time.Millisecond},
		algorithms.PerSecond(3_355_443_200),
		{Count: 7, Period: 1_234_567_891 * time.Microsecond, Burst: 7_000_000},
	} {
		for j, a := range []algorithms.Algorithm{algorithms.GCRA{}, algorithms.TokenBucket{}, algorithms.LeakyBucket{}} {
			s.digitsOf(s.named(fmt.Sprintf("p%d-%d", i, j), a, l))
		}
	}
}

// digitsOf wants the state of a policy to be stored as its numbers, in decimal.
func (s *server) digitsOf(p *algorithms.Policy) {
	l, state := p.Limit(), algorithms.State(nil)
	for step, cost := range []int64{1, 1, 2, 1 << 40, l.Burst - 3, -1, 5} {
		s.clock.Set(time.UnixMicro(1_760_000_000_000_099 + int64(step)*101))
		now := s.clock.Now().UnixMicro()
		if _, r := p.Decide(nil, state, now, cost, 0); !r.Limited && cost != 0 {
			state, _ = p.Decide(nil, state, now, cost, 0)
		}
		// Alone and in a group, whose scripts differ.
		mustTake(s, s.store, p, "one", cost)
		charges := []store.Charge{{Policy: p, Key: "two", Cost: cost}, {Policy: p, Key: "other"}}
		if err := s.store.Take(s.Context(), charges, make([]algorithms.Result, 2)); err != nil {
			s.Fatal(err)
		}
		var words []string
		for _, n := range state {
			words = append(words, strconv.FormatInt(n, 10))
		}
		for _, key := range []string{"one", "two"} {
			got, err := s.client.Get(s.Context(), "weir:{"+key+"}:"+p.ID()).Result()
			if want := strings.Join(words, " "); got != want || (err == redis.Nil) != (want == "") {
				s.Errorf("%v, step %d, cost %d: %q is stored (%v), want %q", l, step, cost, got, err, want)
			}
		}
	}
}

func noFractionIsLost(s *server) {
	start := s.clock.Now()
	for _, a := range []algorithms.Algorithm{algorithms.LeakyBucket{}, algorithms.TokenBucket{}, algorithms.GCRA{}} {
		p := s.policy(a, algorithms.PerSecond(1))
		for _, c := range []struct {
			at, wait time.Duration
			seconds  int64
		}{
			{0, 0, -1}, {600 * time.Millisecond, 400 * time.Millisecond, 1}, {950 * time.Millisecond, 50 * time.Millisecond, 1}, {time.Second, 0, -1},
		} {
			s.clock.Set(start.Add(c.at))
			r := mustTake(s, s.store, p, "k", 1)
			// A call that passes and leaves nothing says when the next one would.
			if r.Limited != (c.wait > 0) || r.Limited && (r.RetryAfter != c.wait || r.Cell()[3] != c.seconds) {
				s.Errorf("%s at %v: %+v", casetest.Form(a), c.at, r)
			}
		}
	}
}

func scriptsAreForgotten(s *server) {
	for i, a := range casetest.Algorithms() {
		if testing.Short() && i > 0 {
			break
		}
		s.do("FLUSHALL")
		s.scriptsForgotten(s.policy(a, algorithms.PerMinute(3)), gcra(s, "q", algorithms.PerHour(30)))
	}
}

func (s *server) scriptsForgotten(p, q *algorithms.Policy) {
	charge := func(left int64) {
		s.Helper()
		r := mustTake(s, s.store, p, "k", 1)
		rs, err := takeGroup(s.store, "g", p, q)
		if limited := left < 0; err != nil || r.Limited != limited || r.Remaining != max(0, left) || rs[0] != r || rs[1].Limited {
			s.Errorf("%s, with %d left: %+v; in a group %+v, %v", casetest.Form(p.Algorithm()), left, r, rs, err)
		}
	}
	forget := func() { s.do("SCRIPT", "FLUSH") }
	charge(2)
	forget()
	charge(1)

	var calls, flushes sync.WaitGroup
	stop, start := make(chan struct{}), make(chan struct{})
	flushes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := s.client.ScriptFlush(s.Context()).Err(); err != nil {
					s.Errorf("SCRIPT FLUSH: %v", err)
					return
				}
			}
		}
	})
	for i := range 50 {
		calls.Go(func() {
			<-start
			for range 2 {
				if _, err := store.Take(s.Context(), s.store, p, "other"+strconv.Itoa(i), 1); err != nil {
					s.Errorf("while scripts are forgotten: %v", err)
				}
				if _, err := takeGroup(s.store, "both"+strconv.Itoa(i), p, q); err != nil {
					s.Errorf("a group, while scripts are forgotten: %v", err)
				}
			}
		})
	}
	close(start)
	calls.Wait()
	close(stop)
	flushes.Wait()
	for i := range 50 {
		for _, key := range []string{"other", "both"} {
			if r := mustTake(s, s.store, p, key+strconv.Itoa(i), 0); r.Remaining != 1 {
				s.Errorf("2 of 3 taken while scripts were forgotten: %+v", r)
			}
		}
	}
	charge(0)
	charge(-1)
}
