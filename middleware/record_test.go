package middleware_test

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
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
)

// The parts of writers that some have and others don't.
type (
	plainWriter struct{ http.ResponseWriter }
	flusher     struct{ calls *[]string }
	hijacker    struct{ calls *[]string }
	pusher      struct{ calls *[]string }
	readerFrom  struct{ calls *[]string }
)

func (f flusher) Flush() { *f.calls = append(*f.calls, "Flush") }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	*h.calls = append(*h.calls, "Hijack")
	return nil, nil, errAway
}

func (p pusher) Push(target string, _ *http.PushOptions) error {
	*p.calls = append(*p.calls, "Push "+target)
	return errAway
}

func (r readerFrom) ReadFrom(from io.Reader) (int64, error) {
	*r.calls = append(*r.calls, "ReadFrom")
	return io.Copy(io.Discard, from)
}

// Callers that ask for an optional method get the writer's, and none that it has
// not. ReadFrom is there always, and leads to the writer's or to Write.
func TestRecordHasTheMethods(t *testing.T) {
	var calls []string
	f, h, p, rf := flusher{&calls}, hijacker{&calls}, pusher{&calls}, readerFrom{&calls}
	w := plainWriter{httptest.NewRecorder()}
	for name, w := range map[string]http.ResponseWriter{
		"": w,
		"F": struct {
			plainWriter
			flusher
		}{w, f},
		"H": struct {
			plainWriter
			hijacker
		}{w, h},
		"P": struct {
			plainWriter
			pusher
		}{w, p},
		"R": struct {
			plainWriter
			readerFrom
		}{w, rf},
		"FH": struct {
			plainWriter
			flusher
			hijacker
		}{w, f, h},
		"FP": struct {
			plainWriter
			flusher
			pusher
		}{w, f, p},
		"FR": struct {
			plainWriter
			flusher
			readerFrom
		}{w, f, rf},
		"HP": struct {
			plainWriter
			hijacker
			pusher
		}{w, h, p},
		"HR": struct {
			plainWriter
			hijacker
			readerFrom
		}{w, h, rf},
		"PR": struct {
			plainWriter
			pusher
			readerFrom
		}{w, p, rf},
		"FHP": struct {
			plainWriter
			flusher
			hijacker
			pusher
		}{w, f, h, p},
		"FHR": struct {
			plainWriter
			flusher
			hijacker
			readerFrom
		}{w, f, h, rf},
		"FPR": struct {
			plainWriter
			flusher
			pusher
			readerFrom
		}{w, f, p, rf},
		"HPR": struct {
			plainWriter
			hijacker
			pusher
			readerFrom
		}{w, h, p, rf},
		"FHPR": struct {
			plainWriter
			flusher
			hijacker
			pusher
			readerFrom
		}{w, f, h, p, rf},
	} {
		t.Run(name, func(t *testing.T) {
			var inner http.ResponseWriter
			c, _ := refunding(t, always)
			newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { inner = w })).
				ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			calls = nil
			var want []string
			got := ""
			if f, ok := inner.(http.Flusher); ok {
				got += "F"
				f.Flush()
				want = append(want, "Flush")
			}
			if h, ok := inner.(http.Hijacker); ok {
				got += "H"
				if _, _, err := h.Hijack(); err != errAway {
					t.Errorf("Hijack: %v", err)
				}
				want = append(want, "Hijack")
			}
			if p, ok := inner.(http.Pusher); ok {
				got += "P"
				if err := p.Push("/style", nil); err != errAway {
					t.Errorf("Push: %v", err)
				}
				want = append(want, "Push /style")
			}
			if n, err := io.Copy(inner, struct{ io.Reader }{strings.NewReader("text")}); n != 4 || err != nil {
				t.Errorf("Copy: %d, %v", n, err)
			}
			if strings.Contains(name, "R") {
				got += "R"
				want = append(want, "ReadFrom")
			}
			if got != name || !slices.Equal(calls, want) {
				t.Errorf("%q, calls %q; want %q, %q", got, calls, name, want)
			}
			if u, ok := inner.(interface{ Unwrap() http.ResponseWriter }); !ok || u.Unwrap() != w {
				t.Error("Unwrap does not give the writer")
			}
			err := http.NewResponseController(inner).Flush()
			if strings.Contains(name, "F") != (err == nil) || err != nil && !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("Flush by the ResponseController: %v", err)
			}
		})
	}
}

// countedConn counts what is sent without passing through the process.
type countedConn struct {
	*net.TCPConn
	reads chan int64
}

func (c countedConn) ReadFrom(r io.Reader) (int64, error) {
	n, err := c.TCPConn.ReadFrom(r)
	c.reads <- n
	return n, err
}

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

// A file goes from the kernel to the connection, with Refund too; without it the
// very writer is handed on.
func TestRecordSendsFiles(t *testing.T) {
	const size = 1 << 20
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, refund := range map[string]func(int) bool{"refund": serverError, "none": nil} {
		t.Run(name, func(t *testing.T) {
			c, _ := refunding(t, refund)
			c.Rules = append(c.Rules, middleware.Rule{Policy: policy(t, "other", algorithms.PerHour(10)), Key: keyfunc.Const("k")})
			var outer, inner http.ResponseWriter
			h := newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner = w
				if r.URL.Path == "/serve" {
					http.ServeFile(w, r, file)
					return
				}
				w.Header().Set("Content-Length", fmt.Sprint(size))
				copyFrom(w, file)
			}))
			reads := make(chan int64, 9)
			server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				outer = w
				h.ServeHTTP(w, r)
			}), func(s *httptest.Server) { s.Listener = countedListener{s.Listener, reads} })
			for _, path := range []string{"/serve", "/copy"} {
				res, err := server.Client().Get(server.URL + path)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if len(body) != size || err != nil {
					t.Errorf("%s: %d bytes, %v", path, len(body), err)
				}
				if n := <-reads; n < size-1024 { // the first 512 are looked at, for their type
					t.Errorf("%s: %d bytes were sent by the kernel", path, n)
				}
			}
			if (outer == inner) != (refund == nil) {
				t.Errorf("the writer is %T inside, and %T outside", inner, outer)
			}
		})
	}
}
