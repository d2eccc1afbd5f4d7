package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
)

// When all limits have run out, the server has no key left, of whatever algorithm,
// and its memory back, though nobody asks for a key any more. (The benchmarks do the
// same with a million keys.)
func TestKeysAreGone(t *testing.T) {
	s := newReal(t)
	const keys, callers = 10_000, 16
	var policies []*algorithms.Policy
	for i, a := range casetest.Algorithms() {
		p, err := algorithms.NewPolicy("p"+strconv.Itoa(i), a, algorithms.PerHour(5))
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	fill := func(from, to int) {
		var wg sync.WaitGroup
		for n := range callers {
			wg.Go(func() {
				for i := from + n; i < to; i += callers {
					if _, err := takeGroup(s.store, "+1"+fmt.Sprintf("%010d", i), policies...); err != nil {
						t.Errorf("key %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	fill(0, 2*callers) // connections and scripts are there from the first
	mustTake(t, s.store, policies[0], "alone", 1)
	s.clock.Advance(3 * time.Hour)
	s.goneWithin(1 << 40)
	before := s.memory()

	fill(0, keys)
	if n := s.do("DBSIZE"); n != int64(keys*len(policies)) {
		t.Fatalf("%v keys", n)
	}
	if grown := s.memory() - before; grown < keys*int64(len(policies))*100 {
		t.Errorf("%d keys in %d bytes: this test sees nothing", keys*len(policies), grown)
	}
	s.clock.Advance(3 * time.Hour) // a sliding counter's keys live for up to two periods
	s.goneWithin(before + 1<<20)
}

// goneWithin waits until the server has no key, and no more than so many bytes. It
// polls, as another process can't be waited for otherwise.
func (s *server) goneWithin(bytes int64) {
	s.Helper()
	var keys any
	var used int64
	for range 1200 { // two minutes
		if keys, used = s.do("DBSIZE"), s.memory(); keys == int64(0) && used <= bytes {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Fatalf("%v keys are left, in %d bytes; want none, in %d", keys, used, bytes)
}

// memory is the server's used_memory in bytes.
func (s *server) memory() int64 {
	s.Helper()
	_, rest, _ := strings.Cut(s.do("INFO", "memory").(string), "\nused_memory:")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.Fatal(err)
	}
	return n
}
