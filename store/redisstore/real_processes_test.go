package redisstore_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// processAddr names the server to a process of sharedByProcesses.
const processAddr = "WEIR_TEST_PROCESS_ADDR"

const processes = 4

// shared is a case of calls that four processes make at once: exactly as many pass as
// the limit says, and each of them is told another number that remains.
type shared struct {
	id         string
	algorithms []algorithms.Algorithm
	limit      int64
	calls      int // of each process
}

// The server's clock stands still, so that nothing drains however long it takes.
func (c shared) run(t *testing.T) {
	if addr := os.Getenv(processAddr); addr != "" {
		c.process(t, addr)
		return
	}
	t.Parallel()
	s := redistest.StartAt(t, storetest.NewClock())
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type child struct {
		in  io.Writer
		out *bufio.Reader
	}
	var children []child
	for range processes {
		cmd := exec.Command(binary, "-test.run=^TestCases$/^"+c.id+"$", "-test.count=1")
		cmd.Env, cmd.Stderr = append(os.Environ(), processAddr+"="+s.Addr), os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		children = append(children, child{in, bufio.NewReader(out)})
	}
	for _, a := range c.algorithms {
		for _, child := range children {
			if line, err := child.out.ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("a process says %q, %v", line, err)
			}
		}
		for _, child := range children {
			if _, err := fmt.Fprintln(child.in, "go"); err != nil {
				t.Fatal(err)
			}
		}
		told, denied := map[int64]int{}, 0
		for _, child := range children {
			var rs []algorithms.Result
			line, err := child.out.ReadBytes('\n')
			if err != nil || json.Unmarshal(line, &rs) != nil || len(rs) != c.calls {
				t.Fatalf("a process says %q, %v", line, err)
			}
			for _, r := range rs {
				if r.Limited {
					denied++
				} else {
					told[r.Remaining]++
				}
			}
		}
		if denied != processes*c.calls-int(c.limit) || len(told) != int(c.limit) {
			t.Errorf("%s: %d of %d denied, with a limit of %d; the others were told %v", casetest.Form(a), denied, processes*c.calls, c.limit, told)
		}
		for n := range c.limit {
			if told[n] != 1 {
				t.Errorf("%s: %d calls were told that %d remain", casetest.Form(a), told[n], n)
			}
		}
	}
}

// process is one of the four. For each algorithm it says that it is ready, waits for a
// word, and tells what each call got.
func (c shared) process(t *testing.T, addr string) {
	s, in := newStore(t, addr, redisstore.Config{}), bufio.NewReader(os.Stdin)
	for _, a := range c.algorithms {
		p, err := algorithms.NewPolicy(casetest.Form(a), a, algorithms.PerMinute(c.limit))
		if err != nil {
			t.Fatal(err)
		}
		mustTake(t, s, p, "other", 1) // the connection is up
		start, results := make(chan struct{}), make([]algorithms.Result, c.calls)
		var wg sync.WaitGroup
		for i := range c.calls {
			wg.Go(func() {
				<-start
				r, err := store.Take(t.Context(), s, p, "k", 1)
				if err != nil {
					t.Errorf("Take: %v", err)
				}
				results[i] = r
			})
		}
		fmt.Println("ready")
		_, _ = in.ReadString('\n')
		close(start)
		wg.Wait()
		line, err := json.Marshal(results)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(line))
	}
}
