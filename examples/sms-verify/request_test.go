package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestBadInput(t *testing.T) {
	const badRequest, tooLarge = http.StatusBadRequest, http.StatusRequestEntityTooLarge
	good := `{"phone":"+12025550142"}`
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"empty", ``, badRequest},
		{"null", `null`, badRequest},
		{"array", `[` + good + `]`, badRequest},
		{"string", `"+12025550142"`, badRequest},
		{"null phone", `{"phone":null}`, badRequest},
		{"empty phone", `{"phone":""}`, badRequest},
		{"number", `{"phone":12025550142}`, badRequest},
		{"object", `{"phone":{"phone":"+12025550142"}}`, badRequest},
		{"two phones", `{"phone":"+12025550142","phone":"+12025550143"}`, badRequest},
		{"other case", `{"PHONE":"+12025550142"}`, badRequest},
		{"unknown field", `{"phone":"+12025550142","admin":"yes"}`, badRequest},
		{"two objects", good + good, badRequest},
		{"rest", good + `x`, badRequest},
		{"cut off", `{"phone":"+12025550142"`, badRequest},
		{"comma", `{"phone":"+12025550142",}`, badRequest},
		{"not a phone", `{"phone":"+1202"}`, badRequest},
		{"large", good + strings.Repeat(" ", 1024), tooLarge},
		{"large phone", `{"phone":"` + strings.Repeat("1", 1024) + `"}`, tooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			w := b.do("POST", "/api/codes", home, c.body)
			if w.Code != c.want {
				t.Errorf("status %d, want %d; body %s", w.Code, c.want, w.Body)
			}
			wantHeader(t, w, "Content-Type", "application/problem+json")
			wantHeader(t, w, "X-RateLimit-Limit", "20") // the address paid
			wantHeader(t, w, "X-RateLimit-Remaining", "19")
			b.wantSent(0)
			b.send(http.StatusAccepted, home, alice) // the phone did not
		})
	}
}

func TestGoodInput(t *testing.T) {
	for _, c := range []struct{ contentType, body string }{
		{"application/json; charset=utf-8", `{"phone":"+12025550142"}`},
		{"Application/JSON", "\n{ \"phone\" : \"\\u002b12025550142\" }\n"},
		{"application/json", `{"phone":"+12025550142"}` + strings.Repeat(" ", 1000)},
		{"application/x-www-form-urlencoded", `{"phone":"+12025550142"}`}, // curl -d
		{"", `{"phone":"+12025550142"}`},
	} {
		b := newBench(t)
		if w := b.do("POST", "/api/codes", home, c.body, "Content-Type", c.contentType); w.Code != http.StatusAccepted {
			t.Errorf("%s %.60s: status %d, want 202; body %s", c.contentType, c.body, w.Code, w.Body)
		}
	}
}

// A page of another site can not have its visitors' browsers ask for codes.
func TestOtherSites(t *testing.T) {
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
		{"Origin", "https://other.example", "Content-Type", "application/x-www-form-urlencoded"},
	} {
		b := newBench(t)
		b.send(http.StatusForbidden, home, alice, headers...)
		b.wantSent(0)
	}
	b := newBench(t)
	b.send(http.StatusAccepted, home, alice, "Sec-Fetch-Site", "same-origin")
}

// cutOff is a body that ends the request's context with an error, as net/http
// does where a client is too slow or hangs up.
type cutOff struct{ cancel func() }

func (c cutOff) Read([]byte) (int, error) {
	c.cancel()
	return 0, io.ErrUnexpectedEOF
}

// A body that is cut off is not free.
func TestBodyCutOff(t *testing.T) {
	b := newBench(t)
	for left := 19; left >= 17; left-- {
		ctx, cancel := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "POST", "/api/codes", cutOff{cancel})
		r.RemoteAddr = home + ":40000"
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest {
			t.Errorf("status %d; body %s", w.Code, w.Body)
		}
		wantHeader(t, w, "X-RateLimit-Remaining", strconv.Itoa(left))
	}
	b.wantSent(0)
}
