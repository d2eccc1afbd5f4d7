package adapters_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/store"
)

// curl is the program. Where there is none the test is skipped, or fails under
// .ci/run, which sets WEIR_CI.
func curl(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		const message = "curl is not installed (Debian: apt-get install curl)"
		if os.Getenv("WEIR_CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return func(args ...string) *exec.Cmd {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		t.Cleanup(cancel)
		// -q leaves out the settings of whoever runs this.
		cmd := exec.CommandContext(ctx, path, append([]string{"-q", "-sS", "--noproxy", "*"}, args...)...)
		cmd.Stderr = os.Stderr
		return cmd
	}
}

// both has a server speak HTTP/1.1 and, to who knows it, HTTP/2 without TLS.
func both(s *httptest.Server) {
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
}

// wait is how long a refusal asks to wait, a little less than an hour.
var wait = regexp.MustCompile(`\b(3600|35\d\d)\b`)

// What people see who look with curl.
func TestCurl(t *testing.T) {
	command := curl(t)
	run := func(t *testing.T, args ...string) string {
		t.Helper()
		out, err := command(args...).Output()
		if err != nil {
			t.Errorf("curl %q: %v", args, err)
		}
		return wait.ReplaceAllString(strings.ReplaceAll(string(out), "\r\n", "\n"), "n")
	}
	// has wants an answer with this status line, these fields, each as a line, and
	// this body.
	has := func(t *testing.T, answer, status, body string, fields ...string) {
		t.Helper()
		head, rest, _ := strings.Cut(answer, "\n\n")
		line, head, _ := strings.Cut(head, "\n")
		if strings.TrimSpace(line) != status || rest != body {
			t.Errorf("%q, body %q; want %q, %q", line, rest, status, body)
		}
		for _, field := range fields {
			if !strings.Contains("\n"+strings.ToLower(head)+"\n", "\n"+field+"\n") {
				t.Errorf("no %q in %q", field, head)
			}
		}
	}
	eachSetup(t, func(t *testing.T, s *setup) {
		if !strings.Contains(s.name, "/alone") {
			return // more writers make no difference to the client
		}
		next := make(chan struct{})
		server := s.start(t, s.serve([]route{
			{"GET", "/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }},
			{"GET", "/events", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 3 {
					fmt.Fprintf(w, "data: %d\n\n", i)
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Errorf("Flush: %v", err)
					}
					if i < 2 {
						select {
						case next <- struct{}{}:
						case <-r.Context().Done():
							return
						}
					}
				}
			}},
		}), both)

		left := int64(10)
		settled := func() {
			t.Helper()
			if !s.refund {
				left--
			}
			s.settled(t, 200, left)
		}
		for _, protocol := range []struct{ flag, status string }{{"--http1.1", "HTTP/1.1 %d %s"}, {"--http2-prior-knowledge", "HTTP/2 %d"}} {
			ok := fmt.Sprintf(protocol.status, 200, "OK")
			if strings.HasPrefix(protocol.status, "HTTP/2") {
				ok = fmt.Sprintf(protocol.status, 200)
			}
			has(t, run(t, "-i", protocol.flag, server.URL), ok, "hello\n", "x-ratelimit-limit: 10", fmt.Sprintf("x-ratelimit-remaining: %d", left-1))
			settled()
			events(t, command("-N", protocol.flag, server.URL+"/events"), next)
			settled()
		}

		if _, err := store.Take(t.Context(), s.store, s.policy, "127.0.0.1", left); err != nil {
			t.Fatal(err)
		}
		refused := []string{"x-ratelimit-limit: 10", "x-ratelimit-remaining: 0", "retry-after: n", "cache-control: no-store"}
		text := append(refused, "content-type: text/plain; charset=utf-8")
		has(t, run(t, "-i", server.URL), "HTTP/1.1 429 Too Many Requests", "Too Many Requests. Try again in n seconds.\n", text...)
		has(t, run(t, "-i", "--http2-prior-knowledge", server.URL), "HTTP/2 429", "Too Many Requests. Try again in n seconds.\n", text...)
		// Two on one connection: a body would be taken for the next answer.
		const report = "connections %{num_connects}, bytes %{size_download}\n"
		heads := strings.SplitAfter(run(t, "-I", "-w", report, server.URL, server.URL), "\n\n")
		if len(heads) != 3 || !strings.HasPrefix(heads[1], "connections 1, bytes 0\n") || heads[2] != "connections 0, bytes 0\n" {
			t.Fatalf("HEAD twice: %q", heads)
		}
		for _, head := range []string{heads[0], strings.TrimPrefix(heads[1], "connections 1, bytes 0\n")} {
			has(t, head, "HTTP/1.1 429 Too Many Requests", "", text...)
		}
		answer := run(t, "-i", "-H", "Accept: application/json", server.URL)
		_, body, _ := strings.Cut(answer, "\n\n")
		has(t, answer, "HTTP/1.1 429 Too Many Requests", body, append(refused, "content-type: application/problem+json")...)
		var problem struct{ Status int }
		if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != 429 {
			t.Errorf("%q: %v", body, err)
		}
	})
}

// events wants three events, each of which is seen while the server holds the next.
func events(t *testing.T, cmd *exec.Cmd, next chan struct{}) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("curl: %v", err)
		}
	}()
	lines := bufio.NewReader(out)
	for i := range 3 {
		for _, want := range []string{fmt.Sprintf("data: %d\n", i), "\n"} {
			if line, err := lines.ReadString('\n'); line != want {
				t.Fatalf("event %d: %q, %v", i, line, err)
			}
		}
		if i < 2 {
			<-next
		}
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
}
