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
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// processAddr names the server to a process of sharedByProcesses.
const processAddr = "WEIR_TEST_PROCESS_ADDR"

const (
	processes = 4
	calls     = 100 // of each, all at once
)

// Of 400 calls that four processes make at once, exactly as many pass as the
// limit says, and each of them is told another number that remains: WR-03. The
// server's clock stands still, so that nothing drains however long it takes.
func sharedByProcesses(t *testing.T) {
	if addr := os.Getenv(processAddr); addr != "" {
		process(t, addr)
		return
	}
	t.Parallel()
	const limit = 50
	s := redistest.StartAt(t, storetest.NewClock())
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type child struct {
		start io.Closer
		out   *bufio.Reader
		cmd   *exec.Cmd
	}
	var children []child
	for range processes {
		cmd := exec.Command(binary, "-test.run=^TestCases$/^WR-03$", "-test.count=1")
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
		children = append(children, child{in, bufio.NewReader(out), cmd})
	}
	for _, c := range children {
		if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("a process says %q, %v", line, err)
		}
	}
	for _, c := range children {
		_ = c.start.Close()
	}
	told, denied := map[int64]int{}, 0
	for _, c := range children {
		var rs []algorithms.Result
		line, err := c.out.ReadBytes('\n')
		if err != nil || json.Unmarshal(line, &rs) != nil || len(rs) != calls {
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
	if denied != processes*calls-limit || len(told) != limit {
		t.Errorf("%d of %d denied, with a limit of %d; the others were told %v", denied, processes*calls, limit, told)
	}
	for n := range int64(limit) {
		if told[n] != 1 {
			t.Errorf("%d calls were told that %d remain", told[n], n)
		}
	}
}

// process is one of the four: it says that it is ready, waits for its input to
// end, and tells what each call got.
func process(t *testing.T, addr string) {
	p, s := gcra(t, "p", algorithms.PerMinute(50)), newStore(t, addr, redisstore.Config{})
	mustTake(t, s, p, "other", 1) // the connection is up
	start, results := make(chan struct{}), make([]algorithms.Result, calls)
	var wg sync.WaitGroup
	for i := range calls {
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
	_, _ = io.Copy(io.Discard, os.Stdin)
	close(start)
	wg.Wait()
	line, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(line))
}
