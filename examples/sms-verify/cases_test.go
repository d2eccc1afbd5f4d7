package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestCases are reports from the field, by their number.
func TestCases(t *testing.T) {
	t.Run("SMS-01", func(t *testing.T) {
		// The limiter saw the number as typed: each spelling bought a message.
		b := newBench(t)
		for i, phone := range []string{
			"+1 202-555-0142", "+12025550142", "(202) 555-0142", "1-202-555-0142",
			" +1 (202) 555 0142 ", "001 202 555 0142", "tel:+1-202-555-0142", "+1.202.555.0142",
		} {
			want := http.StatusTooManyRequests
			switch {
			case i == 0:
				want = http.StatusAccepted
			case phone == "001 202 555 0142":
				want = http.StatusBadRequest // 00 is not how one dials abroad from the US
			}
			b.send(want, home, phone)
			b.clock.advance(time.Second)
		}
		b.wantSent(1)
		if got := b.sender.sent[0].phone; got != alice {
			t.Errorf("the message went to %q, want %q", got, alice)
		}
	})

	t.Run("SMS-05", func(t *testing.T) {
		// Twenty clicks at once: all saw an empty counter.
		b := newBench(t)
		server := httptest.NewServer(b.handler)
		defer server.Close()
		got := together(60, func() int {
			return post(server.Client(), server.URL+"/api/codes", `{"phone":"`+alice+`"}`)
		})
		if got[http.StatusAccepted] != 1 || got[http.StatusTooManyRequests] != 59 {
			t.Errorf("statuses %v, want 1 × 202 and 59 × 429", got)
		}
		b.wantSent(1)
	})

	t.Run("SMS-06", func(t *testing.T) {
		// Requests without a number shared one key, or were free.
		b := newBench(t)
		bodies := []string{
			"{}", "{}", "{}", "not json", "not json", "not json",
			`{"phone":["+12025550142","+12025550143"]}`,
		}
		for i, body := range bodies {
			w := b.do("POST", "/api/codes", home, body)
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s: status %d, want 400", body, w.Code)
			}
			wantHeader(t, w, "X-RateLimit-Limit", "20")
			wantHeader(t, w, "X-RateLimit-Remaining", []string{"19", "18", "17", "16", "15", "14", "13"}[i])
		}
		b.wantSent(0)
		b.send(http.StatusAccepted, away, alice)
		b.wantSent(1)
		// Not even the numbers in the array were charged: both are free.
		b.send(http.StatusAccepted, away, bob)

		// Bad input runs into the address's limit like good input, and harms nobody else.
		for range 13 {
			b.do("POST", "/api/codes", home, "{}")
		}
		if w := b.do("POST", "/api/codes", home, "{}"); w.Code != http.StatusTooManyRequests {
			t.Errorf("request 21 without a number: status %d, want 429", w.Code)
		}
		if w := b.do("POST", "/api/codes", away, "{}"); w.Code != http.StatusBadRequest {
			t.Errorf("without a number from another address: status %d, want 400", w.Code)
		}
	})
}
