package keyfunc_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/keyfunc"
)

// bodyServer is a server that limits by phone and tells what its handler reads.
func bodyServer(t *testing.T, h2 bool) *httptest.Server {
	f := keyfunc.Body{Max: 1000}.JSON("phone")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k, err := f(r)
		if errors.Is(err, keyfunc.ErrBodyTooLong) {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		b, readErr := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %v %d %v", k, b, readErr, r.ContentLength, errors.Is(err, io.ErrUnexpectedEOF))
	}))
	t.Cleanup(server.Close)
	if server.EnableHTTP2 = h2; h2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	return server
}

// What real servers make of a body that was read and put back.
func TestBodyOnServer(t *testing.T) {
	long := phoneBody + strings.Repeat(" ", 2000)
	for _, h2 := range []bool{false, true} {
		server := bodyServer(t, h2)
		client := server.Client()
		client.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute // waits to be told
		for _, tt := range []struct {
			body   string
			length int64
			expect bool
			told   bool
			status int
			want   string
		}{
			{phoneBody, 24, false, false, 200, "+12025550142 " + phoneBody + " <nil> 24 false"},
			{phoneBody, -1, false, false, 200, "+12025550142 " + phoneBody + " <nil> -1 false"},
			{phoneBody, 24, true, true, 200, "+12025550142 " + phoneBody + " <nil> 24 false"},
			{phoneBody, -1, true, true, 200, "+12025550142 " + phoneBody + " <nil> -1 false"},
			{long, 2024, false, false, 413, ""},
			{long, -1, false, false, 413, ""},
			{long, 2024, true, false, 413, ""}, // refused before it was sent
			{long, -1, true, true, 413, ""},
		} {
			told := false
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { told = true }})
			r, err := http.NewRequestWithContext(ctx, "POST", server.URL, io.NopCloser(strings.NewReader(tt.body)))
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = tt.length
			if tt.expect {
				r.Header.Set("Expect", "100-continue")
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(got) != tt.want || err != nil || resp.StatusCode != tt.status || told != tt.told {
				t.Errorf("HTTP/2 %v, length %d, expect %v: got %d %q, %v, told to continue %v; want %d %q, %v",
					h2, tt.length, tt.expect, resp.StatusCode, got, err, told, tt.status, tt.want, tt.told)
			}
		}
	}
}

// A body that ends before its Content-Length does so for the handler too.
func TestBodyCutOffOnServer(t *testing.T) {
	conn, err := net.Dial("tcp", bodyServer(t, false).Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n%s", phoneBody)
	_ = conn.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(conn)
	if want := "\r\n\r\n " + phoneBody + " unexpected EOF 30 true"; !strings.HasSuffix(string(got), want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
