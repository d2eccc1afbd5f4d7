package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store/storetest"
)

// patient, of a URL, is for a machine that tests keep busy.
const patient = "dial_timeout=20s&read_timeout=20s"

// asProgram in the environment makes the tests' binary run as the program.
const asProgram = "SMS_VERIFY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program is the example as a process of its own.
type program struct {
	url    string // ends before the route's last part
	stdout *console
	stderr *console
}

// startProgram starts the example with a Redis, and kills it when the test ends.
func startProgram(t *testing.T, redisURL string) *program {
	t.Helper()
	p := &program{stdout: newConsole(), stderr: newConsole()}
	cmd := exec.Command(os.Args[0], "-addr", "127.0.0.1:0", "-redis", redisURL)
	cmd.Env = append(slices.Clone(os.Environ()), asProgram+"=1", secretVariable+"="+testSecret)
	cmd.Stdout, cmd.Stderr = p.stdout, p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p.url = p.stdout.await(t, `(http://127\.0\.0\.1:[1-9]\d*/api/)codes`)
	return p
}

// SMS-05 with three processes: of sixty clicks at once, spread over them, one
// buys a message, and its code works once, at whichever process it comes in.
func TestProcesses(t *testing.T) {
	server := redistest.Start(t)
	var ps []*program
	for range 3 {
		ps = append(ps, startProgram(t, "redis://"+server.Addr+"?"+patient))
	}
	try := func(p *program, path, body string) int { return post(http.DefaultClient, p.url+path, body) }
	var next atomic.Int64
	got := together(60, func() int { return try(ps[next.Add(1)%3], "codes", `{"phone":"`+alice+`"}`) })
	if got[http.StatusAccepted] != 1 || got[http.StatusTooManyRequests] != 59 {
		t.Errorf("statuses %v, want 1 × 202 and 59 × 429", got)
	}
	const text = "text message to ***42: your code is "
	var code string
	var others []*program // than the one that sent
	for _, p := range ps {
		_, sent, ok := strings.Cut(p.stdout.String(), text)
		switch {
		case !ok:
			others = append(others, p)
		case code != "" || strings.Contains(sent, text):
			t.Error("more than one message was sent")
		default:
			code = sent[:6]
		}
		if log := p.stderr.String(); log != "" {
			t.Errorf("stderr: %s", log)
		}
	}
	if len(others) != 2 {
		t.Fatalf("%d processes sent nothing, want 2", len(others))
	}
	next.Store(0)
	got = together(4, func() int {
		return try(others[next.Add(1)%2], "verifications", `{"phone":"`+alice+`","code":"`+code+`"}`)
	})
	if got[http.StatusOK] != 1 || got[http.StatusUnprocessableEntity] != 3 {
		t.Errorf("the right code four times at the other processes: %v, want one 200 and three 422", got)
	}
}

// Two servers on one Redis are one limit: of sixty clicks at once one passes.
func TestServersShareRedis(t *testing.T) {
	mini := redistest.Mini(t, storetest.NewClock())
	sender := &fakeSender{}
	var urls []string
	for range 2 {
		client := newClient(t, mini.Addr())
		limits, err := redisStore(client)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newServer(config{
			store:  limits,
			codes:  &codes{[]byte(testSecret), redisVault{client}},
			region: "US",
			sender: sender,
			logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(s.handler())
		defer server.Close()
		urls = append(urls, server.URL)
	}
	var next atomic.Int64
	got := together(60, func() int {
		return post(http.DefaultClient, urls[next.Add(1)%2]+"/api/codes", `{"phone":"`+alice+`"}`)
	})
	if got[http.StatusAccepted] != 1 || got[http.StatusTooManyRequests] != 59 || len(sender.sent) != 1 {
		t.Errorf("statuses %v and %d messages, want 1 × 202, 59 × 429, one message", got, len(sender.sent))
	}
	// The refusals cost the address nothing: of its 20, the message took one, and
	// this, which has no phone, takes one.
	resp, err := http.Post(urls[0]+"/api/codes", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("X-RateLimit-Remaining"); resp.Body.Close() != nil || got != "18" {
		t.Errorf("%s left for the address, want 18", got)
	}
	want := []string{
		"sms-verify:code:" + alice,
		"sms-verify:limit:{" + alice + "}:phone-day:gcra", "sms-verify:limit:{127.0.0.1}:address:gcra",
	}
	for _, key := range want {
		if !mini.Exists(key) {
			t.Errorf("Redis lacks %s of %q", key, mini.Keys())
		}
	}
}

// The program serves from a cluster, where a phone and an address are still one
// decision, and from what sentinels watch.
func TestClusterAndSentinel(t *testing.T) {
	nodes := redistest.Cluster(t).Addrs()
	watched := redistest.Sentinel(t)
	for _, redisURL := range []string{
		"redis+cluster://" + nodes[0] + "?addr=" + nodes[1] + "&" + patient,
		"redis+sentinel://" + watched.Sentinels[0] + "/0?master_name=" + watched.Name + "&" + patient,
	} {
		p := startProgram(t, redisURL)
		for i, want := range []int{http.StatusAccepted, http.StatusTooManyRequests} {
			if got := post(http.DefaultClient, p.url+"codes", `{"phone":"`+alice+`"}`); got != want {
				t.Errorf("%s: code %d: status %d, want %d; %s", redisURL, i+1, got, want, p.stderr)
			}
		}
		code := p.stdout.await(t, `your code is (\d{6})`)
		for i, want := range []int{http.StatusOK, http.StatusUnprocessableEntity} {
			if got := post(http.DefaultClient, p.url+"verifications", `{"phone":"`+alice+`","code":"`+code+`"}`); got != want {
				t.Errorf("%s: try %d: status %d, want %d", redisURL, i+1, got, want)
			}
		}
	}
}
