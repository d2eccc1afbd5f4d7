package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server that a test has started.
type Server struct {
	Addr string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	args []string
	dir  string
	up   string   // what the process logs when it is up
	time *os.File // what the process reads its time from, of StartAt
}

// Start starts a redis-server with these arguments on a free port of the
// loopback interface, and stops it when the test ends. Where there is no
// redis-server the test is skipped, or fails under .ci/run, which sets WEIR_CI.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, nil, plain(args))
}

// program is how a server is started on a port, and what it logs when it is up.
// A port that answers is no sign: it may be another's.
type program struct {
	args  func(dir string, port int) []string
	ready string
}

func plain(more []string) program {
	return program{func(dir string, port int) []string {
		return append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"}, more...)
	}, "Ready to accept connections"}
}

// start starts a program, on another port if somebody else took the first.
func start(t testing.TB, env []string, p program) *Server {
	t.Helper()
	binary := find(t, "redis-server", "redis-server")
	for try := 0; ; try++ {
		s, err := launch(t, binary, env, p)
		if err == nil {
			return s
		}
		if try == 4 {
			t.Fatalf("redis-server: %v", err)
		}
	}
}

func launch(t testing.TB, binary string, env []string, p program) (*Server, error) {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	s := &Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		args: p.args(dir, port),
		dir:  dir,
		up:   p.ready,
	}
	s.cmd = exec.Command(binary, s.args...)
	s.cmd.Env = append(os.Environ(), env...)
	if err := s.run(); err != nil {
		return nil, err
	}
	t.Cleanup(s.Stop)
	return s, nil
}

// run starts the process and waits until it is up.
func (s *Server) run() error {
	name := filepath.Join(s.dir, "log")
	log, err := os.Create(name)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	cmd, done := s.cmd, make(chan struct{})
	s.done = done
	go func() { defer close(done); _ = cmd.Wait() }()
	up := false
	err = poll(func() error {
		text, err := os.ReadFile(name)
		if err == nil && bytes.Contains(text, []byte(s.up)) {
			up = true
			return nil
		}
		select {
		case <-done: // no use to wait on
			return nil
		default:
		}
		return fmt.Errorf("not up on %s, %v:\n%s", s.Addr, err, text)
	})
	if err == nil && !up {
		text, _ := os.ReadFile(name)
		err = fmt.Errorf("ended at once, on %s:\n%s", s.Addr, text)
	}
	if err != nil {
		s.Stop()
	}
	return err
}

// find is the path of a program, which a package of Debian's has.
func find(t testing.TB, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, "%s is not installed (Debian: apt-get install %s)", program, debian)
	}
	return path
}

// missing skips a test for what is not here, or fails it where it has to be.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("WEIR_CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// poll calls f until it gives no error, for at most a minute: machines are slow
// at times. It sleeps in between, since what other processes do can't be waited
// for otherwise.
func poll(f func() error) error {
	for deadline := time.Now().Add(time.Minute); ; {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Client is a client of its own, for what a test does behind a store's back.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Do sends one command, which must not fail. No reply is nil.
func (s *Server) Do(t testing.TB, args ...any) any {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// PID is the id of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Restart starts a server again that has been stopped, on its port, with what it has
// written to its directory, and with these arguments besides. It returns when the
// server is up, and must not be called while somebody else uses s.
func (s *Server) Restart(more ...string) error {
	before := s.cmd
	s.cmd = exec.Command(before.Path, slices.Concat(s.args, more)...)
	s.cmd.Env = before.Env
	return s.run()
}

// Stop kills the server. It may be called twice.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	<-s.done
}
