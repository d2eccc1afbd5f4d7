package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// crashChild tells a process of this test to be a child of one of the tests
// below, and of what: address, units, goroutines, and calls of each of those, 0
// for no end.
const crashChild = "WEIR_TEST_CRASH_CHILD"

// ready is what a child reports first.
const ready = -1

// childName is what the connections of children are called.
const childName = "child"

// TestCrashChild is no test: it is what a child does. It reports ready, waits for
// its input to end, and reports what remains after each decision that passed, a
// line each, before it asks for the next.
func TestCrashChild(t *testing.T) {
	job := strings.Fields(os.Getenv(crashChild))
	if len(job) != 4 {
		return
	}
	var n [3]int
	for i := range n {
		n[i], _ = strconv.Atoi(job[1+i])
	}
	units, goroutines, calls := n[0], n[1], n[2]
	report := os.NewFile(3, "report")
	client := closing(t, redis.NewClient(&redis.Options{Addr: job[0], ClientName: childName, PoolSize: goroutines, ContextTimeoutEnabled: true}))
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := lasting(t, "crash", int64(units))
	if _, err := ask(t.Context(), s, "other", p); err != nil { // the connection is up
		t.Fatal(err)
	}
	_, _ = fmt.Fprintln(report, ready)
	_, _ = io.Copy(io.Discard, os.Stdin)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := 0; calls == 0 || i < calls; i++ {
				r, err := ask(t.Context(), s, "k", p)
				if err != nil {
					t.Error(err)
					return
				}
				if r.Limited {
					continue
				}
				if _, err := fmt.Fprintln(report, r.Remaining); err != nil {
					return // the parent is gone
				}
			}
		})
	}
	wg.Wait()
}

// child is a process and what it has reported.
type child struct {
	cmd    *exec.Cmd
	passes chan int64
}

// startChild starts a child that begins when the end of in is reached.
func startChild(t *testing.T, addr string, in *os.File, units, goroutines, calls int) *child {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{exec.Command(binary, "-test.run=^TestCrashChild$", "-test.count=1"), make(chan int64, 1<<20)}
	c.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d", crashChild, addr, units, goroutines, calls))
	c.cmd.ExtraFiles, c.cmd.Stderr = []*os.File{w}, os.Stderr
	if in != nil {
		c.cmd.Stdin = in
	}
	err = c.cmd.Start()
	_ = w.Close() // the child's own is the last: the report ends with it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	go func() {
		defer r.Close()
		defer close(c.passes)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			n, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				t.Errorf("a child reports %q", lines.Text())
			}
			c.passes <- n
		}
	}()
	if n := <-c.passes; n != ready {
		t.Fatalf("a child reports %d before it is ready", n)
	}
	return c
}

// wait is all that the child reports from here on.
func (c *child) wait() (passes []int64) {
	for n := range c.passes {
		passes = append(passes, n)
	}
	return passes
}

// A process is killed while it and another charge a key: what is charged then is
// what the two were told, and at most what the dead one had asked for and was
// not told.
func TestKilledProcess(t *testing.T) {
	addr := redistest.Start(t).Addr
	client := closing(t, redis.NewClient(&redis.Options{Addr: addr}))
	const units, goroutines, calls = 1_000_000, 8, 200
	victim := startChild(t, addr, nil, units, goroutines, 0)
	told := map[int64]int{}
	for range 100 { // it is at work
		told[<-victim.passes]++
	}
	survivor := startChild(t, addr, nil, units, goroutines, calls)
	for range 100 { // so are both
		told[<-survivor.passes]++
	}
	if err := victim.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, n := range append(victim.wait(), survivor.wait()...) {
		told[n]++
	}
	if err := survivor.cmd.Wait(); err != nil {
		t.Errorf("the survivor: %v", err)
	}
	// The server reads what was sent to it, and then that the connections ended.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		list, err := client.ClientList(t.Context()).Result()
		if err == nil && !strings.Contains(list, "name="+childName) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the children's connections: %v\n%s", err, list)
		}
	}
	s, err := redisstore.New(closing(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	look, err := store.Take(t.Context(), s, lasting(t, "crash", units), "k", 0)
	if err != nil {
		t.Fatal(err)
	}
	charged := int(units - look.Remaining)
	for n, times := range told {
		if times != 1 || n < look.Remaining {
			t.Errorf("%d calls were told that %d remain; %d do", times, n, look.Remaining)
		}
	}
	if lost := charged - len(told); lost < 0 || lost > goroutines {
		t.Errorf("%d units are charged, and %d were told; want a difference of 0 to %d", charged, len(told), goroutines)
	}
	t.Logf("%d units are charged, %d were told", charged, len(told))
}

// What processes take of a limit at once is the limit, and each is told another
// number that remains.
func TestProcessesShareALimit(t *testing.T) {
	addr := redistest.Start(t).Addr
	const units, goroutines, calls = 100, 16, 5
	in, start, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var children []*child
	for range 4 {
		children = append(children, startChild(t, addr, in, units, goroutines, calls))
	}
	_ = start.Close()
	told := map[int64]int{}
	for _, c := range children {
		for _, n := range c.wait() {
			told[n]++
		}
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("a child: %v", err)
		}
	}
	for n := range int64(units) {
		if told[n] != 1 {
			t.Errorf("%d calls were told that %d remain; want 1", told[n], n)
		}
	}
	if len(told) != units {
		t.Errorf("%d different numbers were told; want %d", len(told), units)
	}
}

// FW-06: whatever becomes of the callers, no key is left without a life time,
// or with a longer one than it needs.
func TestEveryKeyRunsOut(t *testing.T) {
	addr := redistest.Start(t).Addr
	client := closing(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}))
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// As long as nothing runs out in the test, no key of these hides.
	ps := []*algorithms.Policy{lasting(t, "a", 5), lasting(t, "b", 2)}
	full := map[string]time.Duration{"a": 5 * time.Hour, "b": 2 * time.Hour}
	var cancelled atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(6, uint64(g)))
			for range 250 {
				// One in five is given up, before it is sent or while it is under way.
				ctx, cancel := context.WithCancel(t.Context())
				soon := time.Duration(random.IntN(500)) * time.Microsecond
				switch random.IntN(10) {
				case 0:
					time.AfterFunc(soon, cancel)
				case 1:
					ctx, cancel = context.WithTimeout(ctx, soon)
				}
				charges := []store.Charge{{Policy: ps[0], Key: fmt.Sprint(random.IntN(2000)), Cost: random.Int64N(4)}}
				if random.IntN(2) == 0 {
					charges = append(charges, store.Charge{Policy: ps[1], Key: charges[0].Key, Cost: random.Int64N(4)})
				}
				err := s.Take(ctx, charges, make([]algorithms.Result, len(charges)))
				switch _, given := ctx.Deadline(); {
				case err != nil && ctx.Err() == nil && !given:
					t.Errorf("nobody gave up, and err = %v", err)
				case err != nil:
					cancelled.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	keys := 0
	for scan := client.Scan(t.Context(), 0, "*", 1000).Iterator(); scan.Next(t.Context()); keys++ {
		name := scan.Val()
		ttl, err := client.PTTL(t.Context(), name).Result()
		most := full[strings.Split(name, ":")[2]]
		if err != nil || ttl <= 0 || ttl > most {
			t.Errorf("%s: a life time of %v, %v; want at most %v", name, ttl, err, most)
		}
	}
	if keys < 1000 || cancelled.Load() < 50 {
		t.Errorf("%d keys, %d calls cancelled; want many", keys, cancelled.Load())
	}
	t.Logf("%d keys, %d calls cancelled", keys, cancelled.Load())
}
