package middleware_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// serving is a server of h, which logs nothing and leaves nothing running.
func serving(t *testing.T, h http.Handler, change ...func(*httptest.Server)) *httptest.Server {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, f := range change {
		f(s)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// Refund is told what the client sees.
func TestRecordedStatus(t *testing.T) {
	flush := func(w http.ResponseWriter) { w.(http.Flusher).Flush() }
	control := http.NewResponseController
	for name, test := range map[string]struct {
		handler func(http.ResponseWriter)
		want    int
	}{
		"nothing":           {func(http.ResponseWriter) {}, 200},
		"a status":          {func(w http.ResponseWriter) { w.WriteHeader(404) }, 404},
		"200, then another": {func(w http.ResponseWriter) { w.WriteHeader(200); w.WriteHeader(500) }, 200},
		"the first of two":  {func(w http.ResponseWriter) { w.WriteHeader(404); w.WriteHeader(500) }, 404},
		"a body":            {func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")); w.WriteHeader(500) }, 200},
		"an empty body":     {func(w http.ResponseWriter) { _, _ = w.Write(nil); w.WriteHeader(500) }, 200},
		"a string":          {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x"); w.WriteHeader(500) }, 200},
		"status and body":   {func(w http.ResponseWriter) { w.WriteHeader(503); _, _ = w.Write([]byte("x")); flush(w) }, 503},
		"a copy":            {func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("x")); w.WriteHeader(500) }, 200},
		"an empty copy": {func(w http.ResponseWriter) {
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("")})
			w.WriteHeader(500)
		}, 500},
		"a file": {func(w http.ResponseWriter) { copyFrom(w, "record_test.go"); w.WriteHeader(500) }, 200},
		"a file that fails": {func(w http.ResponseWriter) {
			copyFrom(w, ".") // a directory can't be read
			http.Error(w, "", 500)
		}, 500},
		"informational":   {func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(100); w.WriteHeader(404) }, 404},
		"103 and no more": {func(w http.ResponseWriter) { w.WriteHeader(103) }, 200},
		"103 and a body":  {func(w http.ResponseWriter) { w.WriteHeader(103); _, _ = w.Write([]byte("x")) }, 200},
		"101":             {func(w http.ResponseWriter) { w.WriteHeader(101) }, 101},
		"flushed":         {func(w http.ResponseWriter) { flush(w); w.WriteHeader(500) }, 200},
		"controlled":      {func(w http.ResponseWriter) { _ = control(w).Flush(); w.WriteHeader(500) }, 200},
		"no status": {func(w http.ResponseWriter) {
			defer func() {
				_ = recover() // net/http knows no such status
				w.WriteHeader(500)
			}()
			w.WriteHeader(1000)
		}, 500},
		"taken over": {func(w http.ResponseWriter) {
			answer101(w.(http.Hijacker).Hijack())
			_, _ = w.Write([]byte("x"))
		}, 101},
		"control taken over": {func(w http.ResponseWriter) { answer101(control(w).Hijack()) }, 101},
		"taken over late": {func(w http.ResponseWriter) {
			w.WriteHeader(404)
			if conn, _, err := control(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		}, 404},
		"deadlines": {func(w http.ResponseWriter) {
			c := control(w)
			in := time.Now().Add(time.Hour)
			if err := errors.Join(c.SetReadDeadline(in), c.SetWriteDeadline(in), c.EnableFullDuplex()); err != nil {
				http.Error(w, err.Error(), 500)
			}
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan int, 2)
			c, _ := refunding(t, func(code int) bool { told <- code; return false })
			server := serving(t, newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				test.handler(w)
			})))
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			for in := bufio.NewReader(conn); ; {
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					if name == "taken over late" { // nobody has sent the header
						break
					}
					t.Fatal(err)
				}
				if code := res.StatusCode; code >= 200 || code == 101 {
					if code != test.want {
						t.Errorf("the client sees %d, want %d", code, test.want)
					}
					break
				}
			}
			if got := <-told; got != test.want {
				t.Errorf("Refund is told %d, want %d", got, test.want)
			}
		})
	}
}

func answer101(conn net.Conn, _ *bufio.ReadWriter, err error) {
	if err == nil {
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = conn.Close()
	}
}

func copyFrom(w io.Writer, name string) {
	f, err := os.Open(name)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	_, _ = io.Copy(w, f)
}

// brokenWriter can do nothing but write.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) FlushError() error { return errAway }
func (brokenWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, errAway
}

// What the writer says of its failure reaches the handler; where it could not be
// taken over, the connection isn't.
func TestRecordHandsOnErrors(t *testing.T) {
	var told []int
	c, _ := refunding(t, func(code int) bool { told = append(told, code); return false })
	w := brokenWriter{httptest.NewRecorder()}
	h := newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if _, _, err := rc.Hijack(); err != errAway {
			t.Errorf("Hijack: %v", err)
		}
		if r.URL.Path == "/flush" {
			if err := rc.Flush(); err != errAway {
				t.Errorf("Flush: %v", err)
			}
		}
		w.WriteHeader(500)
	}))
	for _, path := range []string{"/", "/flush"} {
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	}
	if !slices.Equal(told, []int{500, 200}) {
		t.Errorf("Refund is told %d", told)
	}
}

// Where nothing can be flushed, the answer has not begun.
func TestRecordWithoutFlush(t *testing.T) {
	told := 0
	c, _ := refunding(t, func(code int) bool { told = code; return false })
	newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush: %v", err)
		}
		w.WriteHeader(500)
	})).ServeHTTP(plainWriter{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
	if told != 500 {
		t.Errorf("Refund is told %d", told)
	}
}

// unwraps is a writer whose abilities only http.ResponseController finds.
type unwraps struct{ http.ResponseWriter }

func (u unwraps) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (u unwraps) CloseNotify() <-chan bool { return closed }

var closed = make(chan bool)

// What the writer has by Unwrap only can be done through the wrapper too.
func TestRecordThroughUnwrap(t *testing.T) {
	told := make(chan int, 1)
	c, _ := refunding(t, func(code int) bool { told <- code; return false })
	h := newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if w.(interface{ CloseNotify() <-chan bool }).CloseNotify() != (<-chan bool)(closed) {
			t.Error("CloseNotify is not the writer's")
		}
		rc := http.NewResponseController(w)
		if r.URL.Path == "/hijack" {
			answer101(rc.Hijack())
		} else if err := rc.Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
		w.WriteHeader(500)
	}))
	server := serving(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(unwraps{w}, r) }))
	for path, want := range map[string]int{"/flush": 200, "/hijack": 500} { // what can't be known, what comes next tells
		res, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := <-told; got != want {
			t.Errorf("%s: Refund is told %d, want %d", path, got, want)
		}
	}
}
