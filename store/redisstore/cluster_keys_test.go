package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
)

// sent is a hook that keeps the arguments of scripts.
type sent struct {
	mu    sync.Mutex
	calls [][]any
}

func (s *sent) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); args[0] == "eval" || args[0] == "evalsha" {
			s.mu.Lock()
			s.calls = append(s.calls, slices.Clone(args))
			s.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

// keys are the KEYS of each call.
func (s *sent) keys() (all [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, args := range s.calls {
		var keys []string
		for _, key := range args[3 : 3+args[2].(int)] {
			keys = append(keys, key.(string))
		}
		all = append(all, keys)
	}
	return all
}

// oneSlot is RL-04: KEYS holds the keys of the charges and nothing else, all in
// one slot, and a script touches no other.
func oneSlot(t *testing.T, s spreadStore, client *redis.ClusterClient, nodes redistest.Nodes) {
	a, b := gcra(t, "a", algorithms.PerMinute(3)), gcra(t, "b", algorithms.PerMinute(1))
	hook := &sent{}
	client.AddHook(hook)
	var monitors []*monitor
	for _, n := range nodes {
		monitors = append(monitors, newMonitor(t, n.Addr))
	}
	for _, key := range []string{"user", "{user}", "%7B", "a b", "é\xff\x00", "7", strings.Repeat("long", 100)} {
		hook.calls = nil
		// All that a script may do: make a key, add to it, refuse, look, lengthen a
		// life, give back, forget.
		slower := gcra(t, "a", algorithms.PerHour(2))
		for _, charge := range []store.Charge{
			{Policy: a, Cost: 1}, {Policy: a, Cost: 2}, {Policy: a, Cost: 1}, {Policy: slower, Cost: 1}, {Policy: a}, {Policy: a, Cost: -1}, {Policy: a, Cost: 1}, {Policy: a, Mode: store.Forget}, {Policy: a, Cost: 1}, {Policy: a, Cost: -9},
		} {
			charge.Key = key
			pair := []store.Charge{{Policy: b, Key: key, Cost: 1, Mode: store.Strike}, charge}
			for _, charges := range [][]store.Charge{{charge}, pair} {
				if err := s.Take(t.Context(), charges, make([]algorithms.Result, len(charges))); err != nil {
					t.Fatal(err)
				}
				calls := hook.keys()
				keys := calls[len(calls)-1]
				if len(keys) != len(charges) {
					t.Errorf("%d keys for %d charges", len(keys), len(charges))
				}
				for i, name := range keys {
					if !strings.HasPrefix(name, "weir:{") || !strings.HasSuffix(name, "}:"+charges[i].Policy.ID()) {
						t.Errorf("KEYS has %q", name)
					}
					if slot(t, client, name) != slot(t, client, keys[0]) {
						t.Errorf("not in one slot: %q", keys)
					}
				}
			}
		}
		declared := map[string]bool{}
		for _, name := range slices.Concat(hook.keys()...) {
			declared[quoted(name)] = true
		}
		seen := 0
		for _, m := range monitors {
			for _, cmd := range m.commands(t) {
				switch {
				case cmd[0] == `"TIME"` && len(cmd) == 1:
				case len(cmd) < 2 || !declared[cmd[1]]:
					t.Errorf("a script runs %s, and its keys are %v", cmd, declared)
				default:
					seen++
				}
			}
		}
		if seen < 14 {
			t.Errorf("%d commands of scripts seen", seen)
		}
	}
}

func slot(t *testing.T, c *redis.ClusterClient, key string) int64 {
	t.Helper()
	n, err := c.ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// monitor is told each command that a server runs.
type monitor struct {
	addr  string
	conn  net.Conn
	lines *bufio.Reader
	marks int
}

func newMonitor(t *testing.T, addr string) *monitor {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	m := &monitor{addr: addr, conn: conn, lines: bufio.NewReader(conn)}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := m.lines.ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q, %v", line, err)
	}
	return m
}

// commands are those that scripts ran since it was last called, each as its
// quoted words.
func (m *monitor) commands(t *testing.T) (all [][]string) {
	t.Helper()
	m.marks++
	mark := fmt.Sprintf("mark %d", m.marks)
	c := redis.NewClient(&redis.Options{Addr: m.addr})
	defer c.Close()
	if err := c.Echo(t.Context(), mark).Err(); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := m.lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, quoted(mark)) {
			return all
		}
		if _, cmd, ok := strings.Cut(strings.TrimSpace(line), " lua] "); ok {
			all = append(all, words(cmd))
		}
	}
}

// words splits what MONITOR shows at the spaces between quotes.
func words(s string) (all []string) {
	for s != "" {
		end := 1
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		all = append(all, s[:min(end+1, len(s))])
		s = strings.TrimPrefix(s[min(end+1, len(s)):], " ")
	}
	return all
}

// quoted is s as MONITOR shows it.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b.WriteString(`\` + string(c))
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
