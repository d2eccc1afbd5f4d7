package adapters_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	ginadapter "github.com/weirgo/weir/adapters/gin"
)

// Events arrive when they are sent, while the handler goes on; what they took is
// given back at their end.
func TestServerSentEvents(t *testing.T) {
	eachClient(t, func(t *testing.T, s *setup, start func(...route) *httptest.Server) {
		seen := make(chan struct{}) // the client has the last event
		server := start(route{"GET", "/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for i, flush := range []func() error{
				func() error { w.(http.Flusher).Flush(); return nil },
				http.NewResponseController(w).Flush,
				func() error { return nil },
			} {
				fmt.Fprintf(w, "data: %d\n\n", i)
				if err := flush(); err != nil {
					t.Errorf("Flush: %v", err)
				}
				if i == 2 {
					return
				}
				select {
				case seen <- struct{}{}:
				case <-r.Context().Done():
					return
				}
			}
		}})
		res := get(t, server, "/")
		wantRateHeaders(t, res.Header, "9")
		s.wantLeft(t, 9)
		events := bufio.NewReader(res.Body)
		for i := range 3 {
			if line, err := events.ReadString('\n'); line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("event %d: %q, %v", i, line, err)
			}
			if i < 2 {
				<-seen
			}
			_, _ = events.ReadString('\n')
		}
		if rest, err := io.ReadAll(events); len(rest) > 0 || err != nil {
			t.Errorf("then %q, %v", rest, err)
		}
		s.settled(t, 200, map[bool]int64{false: 9, true: 10}[s.refund])
	})
}

// gin's own way to stream asks the writer below for more than gin's has.
func TestGinStream(t *testing.T) {
	for _, p := range protocols {
		for _, inside := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/limiter inside %v", p.name, inside), func(t *testing.T) {
				noLeaks(t)
				s := &setup{refund: true, told: make(chan int, 1), served: make(chan struct{}, 1)}
				s.limits(t)
				gin.SetMode(gin.TestMode)
				g := gin.New()
				if inside {
					g.Use(ginadapter.Middleware(s.limit))
				}
				seen := make(chan struct{})
				g.GET("/", func(c *gin.Context) {
					i := 0
					c.Stream(func(w io.Writer) bool {
						if i > 0 {
							select {
							case seen <- struct{}{}:
							case <-c.Request.Context().Done():
							}
						}
						i++
						fmt.Fprintf(w, "%d\n", i)
						return i < 3
					})
				})
				h := http.Handler(g)
				if !inside {
					h = s.limit.Handler(g)
				}
				res := get(t, s.start(t, h, p.start), "/")
				lines := bufio.NewReader(res.Body)
				for i := range 3 {
					if line, err := lines.ReadString('\n'); line != fmt.Sprintln(i+1) {
						t.Fatalf("line %d: %q, %v", i, line, err)
					}
					if i < 2 {
						<-seen
					}
				}
				_, _ = io.Copy(io.Discard, lines)
				s.settled(t, 200, 10)
			})
		}
	}
}

// A deadline set by the handler ends what it writes.
func TestWriteDeadline(t *testing.T) {
	eachClient(t, func(t *testing.T, s *setup, start func(...route) *httptest.Server) {
		ended := make(chan error, 1)
		server := start(route{"GET", "/", func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			if err := errors.Join(rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Now().Add(-time.Second)), rc.EnableFullDuplex()); err != nil {
				t.Errorf("by the ResponseController: %v", err)
			}
			chunk := make([]byte, 1<<16)
			for {
				if _, err := w.Write(chunk); err != nil {
					ended <- err
					return
				}
			}
		}})
		if res, err := server.Client().Get(server.URL); err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			if err == nil {
				t.Error("the client has a whole answer")
			}
		}
		if err := <-ended; strings.Contains(t.Name(), "/http1/") && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write: %v", err)
		}
		s.settled(t, 200, map[bool]int64{false: 9, true: 10}[s.refund])
	})
}

// A file goes to the connection by its own ReadFrom wherever it does so without
// the limiter.
func TestFileByReadFrom(t *testing.T) {
	const size = 1 << 18
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	send := route{"GET", "/", func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Open(file)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Length", fmt.Sprint(size))
		if n, err := io.Copy(w, f); n != size || err != nil {
			t.Errorf("Copy: %d, %v", n, err)
		}
	}}
	eachSetup(t, func(t *testing.T, s *setup) {
		reads := make(chan int64, 9)
		server := s.start(t, s.serve([]route{send}), func(server *httptest.Server) {
			server.Listener = countedListener{server.Listener, reads}
			server.Start()
		})
		if body, err := io.ReadAll(get(t, server, "/").Body); len(body) != size || err != nil {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		s.settled(t, 200, map[bool]int64{false: 9, true: 10}[s.refund])
		if s.framework == "gin" { // its writer is no io.ReaderFrom
			return
		}
		if n := <-reads; n < size-1024 { // the first 512 are looked at, for their type
			t.Errorf("%d bytes by ReadFrom", n)
		}
	})
}

// countedListener makes connections that say what was sent by their ReadFrom.
type countedListener struct {
	net.Listener
	reads chan int64
}

func (l countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countedConn{conn.(*net.TCPConn), l.reads}, nil
}

type countedConn struct {
	*net.TCPConn
	reads chan int64
}

func (c countedConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := c.TCPConn.ReadFrom(r)
	c.reads <- n
	return n, err
}
