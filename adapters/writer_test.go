package adapters_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
)

// mw03: the handler can do with the writer what it could without the limiter.
func mw03(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	content := strings.Repeat("0123456789", 10_000)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		isGin := strings.HasSuffix(t.Name(), "gin")
		got := make(chan struct{}) // closed when the client has the first event
		var outer, inner http.ResponseWriter
		l := newLimiter(t, 10, perIP)
		h := serve(app{
			layers: []layer{plain(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { outer = w; next.ServeHTTP(w, r) })
			}), limit(l.Middleware)},
			routes: []route{
				{"GET", "/sse", func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "data: 1\n\n")
					w.(http.Flusher).Flush()
					select {
					case <-got:
						fmt.Fprint(w, "data: 2\n\n")
					case <-r.Context().Done():
					}
				}},
				{"GET", "/controller", func(w http.ResponseWriter, r *http.Request) {
					rc := http.NewResponseController(w)
					if err := rc.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
						t.Errorf("SetWriteDeadline: %v", err)
					}
					if err := rc.Flush(); err != nil {
						t.Errorf("Flush: %v", err)
					}
				}},
				{"GET", "/hijack", func(w http.ResponseWriter, r *http.Request) {
					wantRateHeaders(t, w.Header(), "")
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Errorf("Hijack: %v", err)
						return
					}
					defer conn.Close()
					fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello")
				}},
				{"GET", "/file", func(w http.ResponseWriter, r *http.Request) {
					inner = w
					if _, ok := w.(io.ReaderFrom); !ok && !isGin { // gin's own writer is none
						t.Errorf("%T is no io.ReaderFrom", w)
					}
					f, err := os.Open(file)
					if err != nil {
						t.Error(err)
						return
					}
					defer f.Close()
					if _, err := io.Copy(w, f); err != nil {
						t.Errorf("Copy: %v", err)
					}
				}},
				{"GET", "/push", func(w http.ResponseWriter, r *http.Request) {
					var pusher http.Pusher
					if g, ok := w.(gin.ResponseWriter); ok {
						pusher = g.Pusher()
					} else {
						pusher, _ = w.(http.Pusher)
					}
					// Go's client wants none, which only the connection knows.
					if pusher == nil {
						t.Errorf("%T offers no push", w)
					} else if err := pusher.Push("/file", nil); err != http.ErrNotSupported {
						t.Errorf("Push: %v", err)
					}
				}},
			},
		})
		server := httptest.NewServer(h)
		defer server.Close()
		server.Client().Timeout = 10 * time.Second // what isn't flushed must not hang

		get := func(s *httptest.Server, path string) *http.Response {
			t.Helper()
			res, err := s.Client().Get(s.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			wantRateHeaders(t, res.Header, "")
			t.Cleanup(func() { _ = res.Body.Close() })
			return res
		}

		events := bufio.NewReader(get(server, "/sse").Body)
		if line, err := events.ReadString('\n'); line != "data: 1\n" {
			t.Fatalf("the first event, while the handler runs: %q, %v", line, err)
		}
		close(got)
		if rest, err := io.ReadAll(events); string(rest) != "\ndata: 2\n\n" || err != nil {
			t.Errorf("then %q, %v", rest, err)
		}

		get(server, "/controller")

		if body, err := io.ReadAll(get(server, "/file").Body); string(body) != content || err != nil {
			t.Errorf("file: %d bytes, %v; want %d", len(body), err, len(content))
		}
		if outer != inner {
			t.Errorf("the writer became another: %T, %T", outer, inner)
		}

		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /hijack HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if all, err := io.ReadAll(conn); !strings.HasPrefix(string(all), "HTTP/1.1 101 ") || !strings.HasSuffix(string(all), "hello") {
			t.Errorf("hijacked: %q, %v", all, err)
		}

		h2 := httptest.NewUnstartedServer(h)
		h2.EnableHTTP2 = true
		h2.StartTLS()
		defer h2.Close()
		if res := get(h2, "/push"); res.ProtoMajor != 2 {
			t.Errorf("protocol %s", res.Proto)
		}
	})
}

// hdr13: the headers are there however the handler ends.
func hdr13(t *testing.T) {
	recoverer := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					w.WriteHeader(500)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
	outside := layer{recoverer, recoverer, gin.RecoveryWithWriter(io.Discard)}
	routes := []route{
		{"GET", "/200", fine},
		{"GET", "/500", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }},
		{"GET", "/panics", func(http.ResponseWriter, *http.Request) { panic("on purpose") }},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 3, perIP)
		h := serve(app{layers: []layer{outside, limit(l.Middleware)}, routes: routes})
		for i, w := range l.wantStatuses(t, h, []int{200, 500, 500, 429}, "GET /200", "GET /500", "GET /panics", "GET /200") {
			wantRateHeaders(t, w.Header(), []string{"2", "1", "0", "0"}[i])
		}
	})
}

// hdr16: the headers are there however the handler begins its answer.
func hdr16(t *testing.T) {
	routes := []route{
		{"GET", "/0", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }},
		{"GET", "/1", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("x")) }},
		{"GET", "/2", fine},
		{"GET", "/3", func(w http.ResponseWriter, r *http.Request) { http.Error(w, "", 500) }},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 5, perIP)
		var serverLog bytes.Buffer
		server := httptest.NewUnstartedServer(serve(app{layers: []layer{limit(l.Middleware)}, routes: routes}))
		server.Config.ErrorLog = log.New(&serverLog, "", 0)
		server.Start()
		for i, want := range []int{204, 200, 200, 500} {
			res, err := server.Client().Get(fmt.Sprintf("%s/%d", server.URL, i))
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("handler %d: %d, want %d", i, res.StatusCode, want)
			}
			wantRateHeaders(t, res.Header, "")
		}
		server.Close() // from here on nobody writes the log
		if serverLog.Len() > 0 {
			t.Errorf("server log: %s", &serverLog)
		}
	})
}
