package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestVerify(t *testing.T) {
	b := newBench(t)
	b.send(http.StatusAccepted, home, alice)
	code := b.lastCode()
	b.try(http.StatusUnprocessableEntity, home, alice, other(code))
	b.try(http.StatusUnprocessableEntity, home, bob, code) // another phone's
	b.try(http.StatusOK, home, "(202) 555-0142", code)
	b.try(http.StatusUnprocessableEntity, home, alice, code) // used
}

// All that is not valid has one answer: it does not tell whether the phone ever
// got a code.
func TestVerifyTellsNothing(t *testing.T) {
	b := newBench(t)
	b.send(http.StatusAccepted, home, alice)
	code := b.lastCode()
	wrong := b.try(http.StatusUnprocessableEntity, home, alice, other(code))
	unknown := b.try(http.StatusUnprocessableEntity, away, bob, code)
	malformed := b.try(http.StatusUnprocessableEntity, away, "+12025550144", "x")
	b.clock.advance(10 * time.Minute)
	expired := b.try(http.StatusUnprocessableEntity, home, alice, code)
	for _, w := range []*httptest.ResponseRecorder{unknown, malformed, expired} {
		if got, want := w.Body.String(), wrong.Body.String(); got != want {
			t.Errorf("body %q, want %q", got, want)
		}
		for name := range wrong.Header() {
			wantHeader(t, w, name, wrong.Header().Get(name))
		}
	}
}

func TestVerifyTries(t *testing.T) {
	b := newBench(t)
	b.send(http.StatusAccepted, home, alice)
	code := b.lastCode()
	for i := range 5 {
		b.try(http.StatusUnprocessableEntity, fmt.Sprintf("192.0.2.%d", i), alice, other(code))
	}
	w := b.try(http.StatusTooManyRequests, home, alice, code)
	wantHeader(t, w, "X-RateLimit-Limit", "5")
	wantHeader(t, w, "X-RateLimit-Remaining", "0")
	wantHeader(t, w, "Retry-After", "120")
	// A new code brings no new tries.
	b.clock.advance(time.Minute)
	b.send(http.StatusAccepted, home, alice)
	b.try(http.StatusTooManyRequests, home, alice, b.lastCode())
	b.clock.advance(time.Minute)
	b.try(http.StatusOK, home, alice, b.lastCode())
}

func TestVerifyAddressLimit(t *testing.T) {
	b := newBench(t)
	for i := range 60 {
		b.try(http.StatusUnprocessableEntity, home, fmt.Sprintf("+120255501%02d", i), "123456")
	}
	w := b.try(http.StatusTooManyRequests, home, "+12025550160", "123456")
	wantHeader(t, w, "X-RateLimit-Limit", "60")
	b.try(http.StatusUnprocessableEntity, away, "+12025550160", "123456")
}

func TestVerifyWithoutCode(t *testing.T) {
	b := newBench(t)
	for i := range 10 { // more than there are tries: they cost the phone none
		body := []string{`{"phone":"` + alice + `"}`, `{"phone":"` + alice + `","CODE":"123456"}`}[i%2]
		if w := b.do("POST", "/api/verifications", home, body); w.Code != http.StatusBadRequest {
			t.Fatalf("status %d, want 400", w.Code)
		}
	}
	w := b.try(http.StatusUnprocessableEntity, home, alice, "123456")
	wantHeader(t, w, "X-RateLimit-Remaining", "4")
}

func TestVerifyOnceAtATime(t *testing.T) {
	b := newBench(t)
	server := httptest.NewServer(b.handler)
	defer server.Close()
	for i := range 20 {
		phone := fmt.Sprintf("+120255501%02d", i)
		b.send(http.StatusAccepted, home, phone)
		body := fmt.Sprintf(`{"phone":%q,"code":%q}`, phone, b.lastCode())
		got := together(2, func() int { return post(server.Client(), server.URL+"/api/verifications", body) })
		if got[http.StatusOK] != 1 || got[http.StatusUnprocessableEntity] != 1 {
			t.Fatalf("two right answers at once: %v, want one 200 and one 422", got)
		}
	}
}
