package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store/cellstore/celltest"
	"github.com/weirgo/weir/store/storetest"
)

// With -cell the address is counted by redis-cell, and before the phone.
func TestCell(t *testing.T) {
	mini := redistest.Mini(t, storetest.NewClock())
	if _, err := celltest.Register(mini); err != nil {
		t.Fatal(err)
	}
	b := newBenchWith(t, func(c *config) {
		s, err := cellStore(t.Context(), newClient(t, mini.Addr()), c.logger)
		if err != nil {
			t.Fatal(err)
		}
		c.cell = s
	})
	phone := func(i int) string { return fmt.Sprintf("+1202555%04d", 100+i) }
	for i := range 20 {
		w := b.send(http.StatusAccepted, home, phone(i))
		if i == 0 {
			wantHeader(t, w, "X-RateLimit-Limit", "1") // the phone's is the stricter
		}
	}
	w := b.send(http.StatusTooManyRequests, home, phone(20))
	wantHeader(t, w, "X-RateLimit-Limit", "20")
	wantHeader(t, w, "Retry-After", "180")
	b.send(http.StatusAccepted, away, phone(20)) // it cost the phone nothing
	b.wantSent(21)
	b.send(http.StatusTooManyRequests, away, phone(20)) // and this costs the address one
	if w := b.do("POST", "/api/codes", away, "{}"); w.Code != http.StatusBadRequest || w.Header().Get("X-RateLimit-Remaining") != "17" {
		t.Errorf("%d, %s of 20 are left for the address, want 17", w.Code, w.Header().Get("X-RateLimit-Remaining"))
	}
	if keys := mini.Keys(); len(keys) != 2 || keys[0] != "sms-verify:cell:{"+home+"}:address:gcra:cell" && keys[1] != "sms-verify:cell:{"+home+"}:address:gcra:cell" {
		t.Errorf("redis-cell keeps %q", keys)
	}
}

// Without the module the program says so and ends; while the server is away it
// starts, and answers 503.
func TestCellWithoutModule(t *testing.T) {
	mini := redistest.Mini(t, storetest.NewClock())
	var stderr strings.Builder
	if code := run(t.Context(), []string{"-addr", "127.0.0.1:0", "-cell", "redis://" + mini.Addr()}, io.Discard, &stderr); code != exitError || !strings.Contains(stderr.String(), "-cell: ") || !strings.Contains(stderr.String(), "redis-cell") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	addr := mini.Addr()
	mini.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := cellStore(ctx, newClient(t, addr), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	b := newBenchWith(t, func(c *config) { c.cell = s })
	b.send(http.StatusServiceUnavailable, home, alice)
	b.wantSent(0)
}

func TestCellFlag(t *testing.T) {
	if _, err := parseFlags([]string{"-cell", "http://user:secret@h"}, io.Discard); err == nil || !strings.Contains(err.Error(), "-cell") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
