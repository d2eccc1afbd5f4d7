package keyfunc_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

func TestBodyReadOnce(t *testing.T) {
	s := &source{Reader: strings.NewReader(phoneBody)}
	r := bodyRequest(nil)
	r.Body = s
	small, large := keyfunc.Body{Max: 5}.JSON("phone"), keyfunc.JSON("phone")
	if _, err := small(r); err != keyfunc.ErrBodyTooLong || s.given != 6 {
		t.Errorf("small: %v, read %d bytes", err, s.given)
	}
	if _, err := small(r); err != keyfunc.ErrBodyTooLong || s.given != 6 {
		t.Errorf("small again: %v, read %d bytes", err, s.given)
	}
	if k, err := large(r); k != "+12025550142" || err != nil {
		t.Errorf("large: got %q, %v", k, err)
	}
	reads, body := s.reads, r.Body
	if k, err := keyfunc.Join(large, large)(r); k != "+12025550142|+12025550142" || err != nil {
		t.Errorf("again: got %q, %v", k, err)
	}
	if _, err := small(r); err != keyfunc.ErrBodyTooLong {
		t.Errorf("small at last: %v", err)
	}
	if s.reads != reads || r.Body != body {
		t.Errorf("read or wrapped again")
	}
	if n, err := r.Body.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	if k, _ := large(r); k == "" || r.Body != body {
		t.Errorf("to read nothing is not to begin")
	}
	wantBody(t, r, phoneBody, nil)
}

// Of a body that was begun, the rest is what both see.
func TestBodyBegun(t *testing.T) {
	f := keyfunc.Body{Max: 32}.JSON("phone")
	for _, sent := range []string{"xx" + phoneBody, "xxxxxxxxxxxx" + phoneBody} { // whole, and with more to read
		for cut := range len(sent) - 24 + 1 {
			r := bodyRequest(strings.NewReader(sent))
			_, _ = f(r)
			if _, err := io.ReadFull(r.Body, make([]byte, cut)); err != nil {
				t.Fatal(err)
			}
			k, _ := f(r)
			if (k == "+12025550142") != (cut == len(sent)-24) {
				t.Errorf("%d bytes into %q: got %q", cut, sent, k)
			}
			wantBody(t, r, sent[cut:], nil)
		}
	}
	// To have room for more is no reason to read more.
	s := &source{Reader: strings.NewReader(phoneBody + strings.Repeat(" ", 100))}
	r := bodyRequest(nil)
	r.Body = s
	_, _ = keyfunc.Body{Max: 99}.JSON("phone")(r)
	_, _ = io.ReadFull(r.Body, make([]byte, 98))
	if _, err := (keyfunc.Body{Max: 5}).JSON("phone")(r); err != keyfunc.ErrBodyTooLong || s.given > 98+6 {
		t.Errorf("%v, %d bytes read", err, s.given)
	}
	_, _ = io.ReadAll(r.Body)
	if k, err := keyfunc.JSON("phone")(r); k != "" || !errors.Is(err, keyfunc.ErrNoKey) {
		t.Errorf("read to the end: got %q, %v", k, err)
	}
}

func TestBodyClosed(t *testing.T) {
	r := bodyRequest(strings.NewReader(phoneBody))
	f := keyfunc.JSON("phone")
	_, _ = f(r)
	_ = r.Body.Close()
	if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
		t.Errorf("read after close: %d, %v", n, err)
	}
	if k, err := f(r); k != "" || !errors.Is(err, keyfunc.ErrNoKey) || !errors.Is(err, http.ErrBodyReadAfterClose) {
		t.Errorf("got %q, %v", k, err)
	}

	// A Close must not wait for a Read that waits for the client.
	client, server := io.Pipe()
	r = bodyRequest(nil)
	r.Body = client
	go func() { _, _ = server.Write([]byte("xx")) }()
	_, _ = keyfunc.Body{Max: 1}.JSON("phone")(r)
	done := make(chan error)
	go func() {
		_, err := io.ReadAll(r.Body)
		done <- err
	}()
	_ = r.Body.Close()
	if err := <-done; err != io.ErrClosedPipe && err != http.ErrBodyReadAfterClose {
		t.Errorf("the reader got %v", err)
	}
}
