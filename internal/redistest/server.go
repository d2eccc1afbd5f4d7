package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Server is a redis-server that a test has started.
type Server struct {
	Addr string
	cmd  *exec.Cmd
}

// Start starts a redis-server with these arguments on a free port of the
// loopback interface, and stops it when the test ends. Where there is no
// redis-server the test is skipped, or fails under .ci/run, which sets WEIR_CI.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	binary := find(t, "redis-server")
	dir := t.TempDir()
	for try := 0; ; try++ {
		port := freePort(t)
		s, err := start(t, binary, dir, port, args)
		if err == nil {
			return s
		}
		if try == 4 { // somebody else may have taken the port
			t.Fatalf("redis-server: %v", err)
		}
	}
}

// find is the path of a program of Debian's redis packages.
func find(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("WEIR_CI") != "" {
		t.Fatalf("%s is missing, and must not be here: %v", program, err)
	}
	t.Skipf("%s is not installed (Debian: apt-get install %s)", program, program)
	return ""
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

func start(t testing.TB, binary, dir string, port int, args []string) (*Server, error) {
	t.Helper()
	name := filepath.Join(dir, "log"+strconv.Itoa(port))
	log, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	s.cmd = exec.Command(binary, append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	t.Cleanup(s.Stop)
	for deadline := time.Now().Add(10 * time.Second); ; {
		if answers(s.Addr) {
			return s, nil
		}
		if s.cmd.ProcessState != nil || time.Now().After(deadline) {
			s.Stop()
			text, _ := os.ReadFile(name)
			return nil, fmt.Errorf("no answer on port %d:\n%s", port, text)
		}
		time.Sleep(10 * time.Millisecond) // a process takes its time to start
	}
}

// answers tells whether a Redis answers there.
func answers(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && (strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH"))
}

// Stop kills the server. It may be called twice.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
