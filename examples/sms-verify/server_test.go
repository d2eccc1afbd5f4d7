package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestSendHeaders(t *testing.T) {
	b := newBench(t)
	w := b.send(http.StatusAccepted, home, alice)
	wantHeader(t, w, "X-RateLimit-Limit", "1")
	wantHeader(t, w, "X-RateLimit-Remaining", "0")
	wantHeader(t, w, "X-RateLimit-Reset", "60")
	wantHeader(t, w, "Retry-After", "")
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	if len(body) != 2 || body["status"] != "sent" || body["expires_in"] != 600.0 {
		t.Errorf("body %s", w.Body)
	}
	if strings.Contains(w.Body.String(), b.lastCode()) {
		t.Error("the answer has the code")
	}

	b.clock.advance(18 * time.Second)
	w = b.send(http.StatusTooManyRequests, away, alice)
	wantHeader(t, w, "X-RateLimit-Limit", "1")
	wantHeader(t, w, "X-RateLimit-Remaining", "0")
	wantHeader(t, w, "Retry-After", "42")
	b.clock.advance(42*time.Second - time.Microsecond)
	b.send(http.StatusTooManyRequests, away, alice)
	b.clock.advance(time.Microsecond)
	b.send(http.StatusAccepted, away, alice)
	b.wantSent(2)
}

// Each limit for a phone refuses in its turn, with its own wait.
func TestPhoneLimits(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.send(http.StatusAccepted, fmt.Sprintf("192.0.2.%d", i), alice)
		b.clock.advance(time.Minute)
	}
	w := b.send(http.StatusTooManyRequests, home, alice)
	wantHeader(t, w, "X-RateLimit-Limit", "5")
	wantHeader(t, w, "Retry-After", "420") // one more each 12 minutes
	for i := range 5 {
		b.clock.advance(12 * time.Minute)
		b.send(http.StatusAccepted, fmt.Sprintf("192.0.2.%d", i), alice)
	}
	b.clock.advance(12 * time.Minute)
	w = b.send(http.StatusTooManyRequests, home, alice)
	wantHeader(t, w, "X-RateLimit-Limit", "10")
	wantHeader(t, w, "Retry-After", "4020") // one more each 144 minutes, of which 77 have gone
	b.wantSent(10)
}

func TestAddressLimit(t *testing.T) {
	b := newBench(t)
	phone := func(i int) string { return fmt.Sprintf("+120255501%02d", i) }
	for i := range 20 {
		b.send(http.StatusAccepted, home, phone(i))
	}
	w := b.send(http.StatusTooManyRequests, home, phone(20))
	wantHeader(t, w, "X-RateLimit-Limit", "20")
	wantHeader(t, w, "Retry-After", "180")
	b.send(http.StatusAccepted, away, phone(20)) // the refusal cost the phone nothing
	b.wantSent(21)
}

// A refusal by the phone's limit leaves the address's budget as it was.
func TestRefusalChargesNothing(t *testing.T) {
	b := newBench(t)
	left := func() string {
		// What has no phone speaks of the address alone, and takes 1.
		return b.do("POST", "/api/codes", home, "{}").Header().Get("X-RateLimit-Remaining")
	}
	b.send(http.StatusAccepted, home, alice)
	if got := left(); got != "18" {
		t.Fatalf("%s left for the address, want 18", got)
	}
	for range 50 {
		b.send(http.StatusTooManyRequests, home, alice)
	}
	if got := left(); got != "17" {
		t.Errorf("%s left for the address, want 17", got)
	}
	// Nor did they put the phone's next turn off.
	b.clock.advance(time.Minute)
	b.send(http.StatusAccepted, home, alice)
}

// Who goes on after a hundred refusals is banned from all routes, for an hour
// from the last of them, and is then as good as new. Others are not concerned.
func TestBan(t *testing.T) {
	b := newBench(t)
	b.send(http.StatusAccepted, home, alice)
	for i := range 100 {
		w := b.send(http.StatusTooManyRequests, home, alice)
		if i == 98 {
			wantHeader(t, w, "Retry-After", "60")
		} else if i == 99 {
			wantHeader(t, w, "Retry-After", "3600")
		}
	}
	for range 30 {
		b.clock.advance(time.Minute)
		if w := b.do("POST", "/api/verifications", home, `{"phone":"`+bob+`","code":"000000"}`); w.Code != http.StatusTooManyRequests {
			t.Fatalf("banned, and answered with %d", w.Code)
		}
	}
	b.send(http.StatusAccepted, away, alice)
	b.clock.advance(30*time.Minute - time.Second)
	wantHeader(t, b.send(http.StatusTooManyRequests, home, bob), "Retry-After", "1")
	b.clock.advance(time.Second)
	b.send(http.StatusAccepted, home, bob)
	b.wantSent(3)
}

func TestForwardedFor(t *testing.T) {
	exhaust := func(b *bench, ip string, headers ...string) {
		for range 20 {
			b.do("POST", "/api/codes", ip, "{}", headers...)
		}
	}
	t.Run("not trusted", func(t *testing.T) {
		b := newBench(t)
		exhaust(b, home, "X-Forwarded-For", "192.0.2.1")
		b.send(http.StatusTooManyRequests, home, alice, "X-Forwarded-For", "192.0.2.2")
	})
	t.Run("trusted", func(t *testing.T) {
		b := newBench(t, "10.0.0.0/8")
		exhaust(b, "10.1.2.3", "X-Forwarded-For", home)
		b.send(http.StatusTooManyRequests, "10.1.2.4", alice, "X-Forwarded-For", "192.0.2.1, "+home) // the left part is the client's own
		b.send(http.StatusAccepted, "10.1.2.3", alice, "X-Forwarded-For", away)
		b.send(http.StatusTooManyRequests, home, bob, "X-Forwarded-For", away) // no proxy
	})
}

func TestSenderFailure(t *testing.T) {
	b := newBench(t)
	b.sender.err = errors.New("provider: to=12025550142 is unreachable")
	w := b.send(http.StatusBadGateway, home, alice)
	if got := w.Body.String(); strings.Contains(got, "provider") {
		t.Errorf("the answer tells the cause: %s", got)
	}
	log := b.log.String()
	if !strings.Contains(log, "is unreachable") {
		t.Errorf("the log lacks the cause: %q", log)
	}
	if strings.Contains(log, "2025550142") {
		t.Errorf("the log has the number: %q", log)
	}
}

// A phone pays for a message that may have left, and not for one that surely has
// not; an address pays for both.
func TestUnsentIsRefunded(t *testing.T) {
	b := newBench(t)
	b.sender.err = fmt.Errorf("provider: 401: %w", errUnsent)
	for range 5 {
		b.send(statusUnsent, home, alice)
		b.clock.advance(time.Second) // what a refund can't know to be unused drains
	}
	b.sender.err = errors.New("provider: read: time-out")
	b.send(http.StatusBadGateway, home, alice)
	b.send(http.StatusTooManyRequests, home, alice)
	b.sender.err = fmt.Errorf("provider: 401: %w", errUnsent)
	for range 20 - 6 {
		b.send(statusUnsent, home, bob)
		b.clock.advance(time.Second)
	}
	b.send(http.StatusTooManyRequests, home, bob) // the address has had its twenty
	b.sender.err = nil
	b.send(http.StatusAccepted, away, bob)
}

// brokenVault is one that is away.
type brokenVault struct{}

func (brokenVault) put(context.Context, string, mac) error { return errors.New("vault: away") }

func (brokenVault) take(context.Context, string, mac) (bool, error) {
	return false, errors.New("vault: away")
}

// Where codes can't be kept, none is sent and none is wrong.
func TestCodesAway(t *testing.T) {
	b := newBench(t)
	b.codes.vault = brokenVault{}
	for _, w := range []*httptest.ResponseRecorder{
		b.send(http.StatusServiceUnavailable, home, alice),
		b.try(http.StatusServiceUnavailable, home, alice, "000000"),
	} {
		wantHeader(t, w, "Retry-After", "1")
		if strings.Contains(w.Body.String(), "vault") {
			t.Errorf("the answer tells the cause: %s", w.Body)
		}
	}
	b.wantSent(0)
	if log := b.log.String(); strings.Count(log, "vault: away") != 2 || strings.Contains(log, alice) {
		t.Errorf("log: %s", log)
	}
}

func TestLogHoldsNoSecrets(t *testing.T) {
	b := newBench(t)
	b.send(http.StatusAccepted, home, alice)
	code := b.lastCode()
	b.send(http.StatusTooManyRequests, home, alice)
	b.try(http.StatusOK, home, alice, code)
	b.try(http.StatusUnprocessableEntity, home, alice, code)
	if got := b.log.String(); got != "" {
		t.Errorf("log: %q", got)
	}
	if got := redact(errors.New("sent 123456 to +12025550142 or 12025550142"), alice, "123456"); got != "sent *** to ***42 or ***42" {
		t.Errorf("redact gives %q", got)
	}
}

func TestRoutes(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", http.StatusOK},
		{"GET", "/api", http.StatusNotFound},
		{"POST", "/", http.StatusMethodNotAllowed},
		{"GET", "/api/codes", http.StatusMethodNotAllowed},
		{"PUT", "/api/verifications", http.StatusMethodNotAllowed},
		{"POST", "/api/codes/", http.StatusNotFound},
	} {
		if w := b.do(c.method, c.path, home, ""); w.Code != c.want {
			t.Errorf("%s %s: status %d, want %d", c.method, c.path, w.Code, c.want)
		}
	}
	w := b.do("GET", "/", home, "")
	for _, want := range []string{
		"POST /api/codes          1/1m    per phone    (phone-minute)\n",
		"POST /api/verifications  60/1h   per address  (tries-address)\n",
		`curl -i 'http://127.0.0.1:8080/api/codes' -H 'Content-Type: application/json' -d '{"phone":"+12025550142"}'` + "\n",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the help lacks %q:\n%s", want, w.Body)
		}
	}
}
