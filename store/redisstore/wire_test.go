package redisstore_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// What becomes of a command on a wire. Any other text is an answer in the
// server's place: the command is not passed on.
const (
	pass = ""
	hold = "hold" // the server answers, and the reply is kept back until release
	lose = "lose" // the server answers, and the connection is cut before the reply
	cut  = "cut"  // the connection is cut before the command is passed on
)

// fate says what becomes of a command.
type fate func(cmd []string) string

// wire stands between clients and a Redis, or in the place of one: it counts
// the commands that arrive and does to each what its fate says.
type wire struct {
	Addr   string
	server string // or empty: then all is answered here
	listen net.Listener
	wg     sync.WaitGroup
	held   chan struct{} // one for each reply that is kept back

	mu    sync.Mutex
	fate  fate
	seen  map[string]int
	conns map[net.Conn]struct{}
	free  chan struct{} // closed when the replies that are kept back now are let go
	done  chan struct{} // closed in the end
}

func newWire(t testing.TB, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{
		Addr: l.Addr().String(), server: server, listen: l, held: make(chan struct{}, 1000),
		seen: map[string]int{}, conns: map[net.Conn]struct{}{}, free: make(chan struct{}), done: make(chan struct{}),
	}
	w.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if w.keep(c) {
				w.wg.Go(func() { w.serve(c) })
			}
		}
	})
	t.Cleanup(func() {
		close(w.done)
		_ = l.Close()
		w.mu.Lock()
		for c := range w.conns {
			_ = c.Close()
		}
		w.conns = nil
		w.mu.Unlock()
		w.wg.Wait()
	})
	return w
}

// keep notes c to be closed in the end. It is false if that was already.
func (w *wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conns == nil {
		_ = c.Close()
		return false
	}
	w.conns[c] = struct{}{}
	return true
}

// meet sets the fate of decisions from here on, and forgets what was counted.
// Other commands pass.
func (w *wire) meet(f fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fate = f
	clear(w.seen)
}

// always is one fate for all.
func always(what string) fate { return func([]string) string { return what } }

// release lets go of the replies that are kept back.
func (w *wire) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.free)
	w.free = make(chan struct{})
}

// count is how many commands of these names have arrived.
func (w *wire) count(names ...string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		n += w.seen[name]
	}
	return n
}

// decisions is how many commands have arrived that charge.
func (w *wire) decisions() int { return w.count("evalsha", "eval") }

func (w *wire) decide(cmd []string) (what string, free <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := strings.ToLower(cmd[0])
	w.seen[name]++
	switch {
	case w.fate == nil:
	case name == "eval", name == "evalsha", name == "asking", w.server == "":
		return w.fate(cmd), w.free
	}
	return pass, w.free
}

func (w *wire) serve(client net.Conn) {
	defer client.Close()
	in, out := bufio.NewReader(client), io.Writer(nil)
	var replies *bufio.Reader
	if w.server != "" {
		server, err := net.Dial("tcp", w.server)
		if err != nil || !w.keep(server) {
			return
		}
		defer server.Close()
		out, replies = server, bufio.NewReader(server)
	}
	for {
		raw, cmd, err := frame(in)
		if err != nil || len(cmd) == 0 {
			return
		}
		what, free := w.decide(cmd)
		switch what {
		case cut:
			return
		case pass, hold, lose:
			if out == nil {
				raw = []byte("-ERR unknown command\r\n")
				break
			}
			if _, err := out.Write(raw); err != nil {
				return
			}
			if raw, _, err = frame(replies); err != nil || what == lose {
				return
			}
		default:
			raw = []byte(what)
		}
		if what == hold {
			w.held <- struct{}{}
			select {
			case <-free:
			case <-w.done:
				return
			}
		}
		if _, err := client.Write(raw); err != nil {
			return
		}
	}
}

// frame reads one command or reply, as it is and as its words. What a server
// pushes is part of the reply that follows.
func frame(r *bufio.Reader) (raw []byte, words []string, err error) {
	var b bytes.Buffer
	err = value(r, &b, &words)
	return b.Bytes(), words, err
}

func value(r *bufio.Reader, raw *bytes.Buffer, words *[]string) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	raw.WriteString(line)
	text := strings.TrimSpace(line[1:])
	elements := 0
	switch line[0] {
	case '$', '=', '!':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return err
		}
		start := raw.Len()
		if _, err := io.CopyN(raw, r, int64(n)+2); err != nil {
			return err
		}
		text = string(raw.Bytes()[start : start+n])
	case '*', '~', '>', '%':
		if elements, err = strconv.Atoi(text); err != nil {
			return err
		}
		text = ""
	}
	if line[0] == '%' {
		elements *= 2
	}
	for range elements {
		if err := value(r, raw, words); err != nil {
			return err
		}
	}
	if line[0] == '>' {
		return value(r, raw, words)
	}
	if text != "" {
		*words = append(*words, text)
	}
	return nil
}

// bulks is an array of strings on the wire.
func bulks(words ...string) string {
	s := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		s += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return s
}

// sentinelWire is a Sentinel that names the master which is asked for.
func sentinelWire(t testing.TB, master func() string) *wire {
	w := newWire(t, "")
	w.meet(func(cmd []string) string {
		switch strings.ToLower(strings.Join(cmd[:min(2, len(cmd))], " ")) {
		case "sentinel get-master-addr-by-name":
			host, port, _ := net.SplitHostPort(master())
			return bulks(host, port)
		case "sentinel sentinels":
			return "*0\r\n"
		}
		if strings.EqualFold(cmd[0], "subscribe") {
			s := ""
			for i, channel := range cmd[1:] {
				s += fmt.Sprintf("*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(channel), channel, i+1)
			}
			return s
		}
		return pass // it is answered as unknown
	})
	return w
}
