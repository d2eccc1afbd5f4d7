package redistest

import (
	_ "embed"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weirgo/weir/store/storetest"
)

//go:embed testdata/clock.c
var clockC []byte

// StartAt starts a redis-server as Start does, that lives by clock: its TIME and
// the life of its keys. It needs Linux and a C compiler, and else skips or fails
// the test as Start does.
func StartAt(t testing.TB, clock *storetest.Clock, args ...string) *Server {
	t.Helper()
	s := startAt(t, clock.Now(), shim(t), plain(args))
	s.Follow(t, clock)
	return s
}

// startAt starts a program whose clock stands at now.
func startAt(t testing.TB, now time.Time, library string, p program) *Server {
	t.Helper()
	name := filepath.Join(t.TempDir(), "clock")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	setTime(t, file, now)
	s := start(t, []string{"LD_PRELOAD=" + library, "WEIR_CLOCK=" + name}, p)
	s.time = file
	return s
}

// Follow has a server of StartAt live by another clock from now on, so that one
// server serves many tests. The one before must not be set any more.
func (s *Server) Follow(t testing.TB, clock *storetest.Clock) {
	t.Helper()
	clock.OnSet(func(now time.Time) { setTime(t, s.time, now) })
	got := s.Do(t, "EVAL", "local t = redis.call('TIME') return t[1] * 1000000 + t[2]", 0)
	if want := clock.Now().UnixMicro(); got != want {
		missing(t, "redis-server can't be given a clock: its TIME is %d, set to %d; is it linked statically?", got, want)
	}
}

// setTime writes to the file that a server has mapped.
func setTime(t testing.TB, file *os.File, now time.Time) {
	t.Helper()
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], uint64(now.UnixMicro()))
	if _, err := file.WriteAt(b[:], 0); err != nil {
		t.Errorf("can't set a server's time: %v", err)
	}
}

// shim compiles the library that stands between a server and its clock.
func shim(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		missing(t, "a server can be given a clock on Linux only")
	}
	gcc, dir := find(t, "gcc", "gcc"), t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockC, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(gcc, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return library
}
