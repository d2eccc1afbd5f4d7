package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
)

func TestStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := middleware.Config{
			Store: failing{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("a personal key")}},
		}
		h := newMiddleware(t, c).Handler(ok)
		for range 5 {
			w := serve(h, accept("application/json"))
			if w.Code != 503 || w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-RateLimit-Limit") != "" ||
				!strings.Contains(w.Body.String(), "#temporary-reduced-capacity") || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
			}
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		serve(h, func(r *http.Request) { *r = *r.WithContext(gone) })
		time.Sleep(time.Second)
		serve(h)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "secret detail") || !strings.Contains(lines[1], "unlogged=4") || strings.Contains(log.String(), "personal") {
			t.Errorf("the log:\n%s", &log)
		}

		c.Failed = func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errAway) {
				w.WriteHeader(http.StatusBadGateway)
			}
		}
		if w := serve(newMiddleware(t, c).Handler(ok)); w.Code != 502 || w.Body.Len() != 0 {
			t.Errorf("with Failed: %d %q", w.Code, w.Body)
		}
	})
}

// Nil is the default logger of the moment. It is told at most one failure a second
// and how many it was not told, and at level Info nothing of missing keys.
func TestDefaultLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := middleware.Config{Store: failing{}, Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("k")}}}
		h := newMiddleware(t, c).Handler(ok)
		c.Rules[0].Key = keyfunc.Header("X-None")
		noKey := newMiddleware(t, c).Handler(ok)

		old, writer, flags := slog.Default(), log.Writer(), log.Flags() // SetDefault turns log too
		defer func() {
			slog.SetDefault(old)
			log.SetOutput(writer)
			log.SetFlags(flags)
		}()
		slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
		for range 3 {
			serve(h)
			serve(h)
			time.Sleep(time.Second)
		}
		serve(noKey)
		if got := out.String(); strings.Count(got, "\n") != 3 || strings.Count(got, "unlogged=1") != 2 {
			t.Error(got)
		}
	})
}

// hanging is a store that does not answer.
type hanging struct{ store.Store }

func (hanging) Validate(...*algorithms.Policy) error { return nil }

func (hanging) Take(ctx context.Context, _ []store.Charge, _ []algorithms.Result) error {
	<-ctx.Done()
	return ctx.Err()
}

// A deadline that passes is the server's own, and a failure; a client that goes is
// not.
func TestDeadlineIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cause, lines := range map[error]int{context.DeadlineExceeded: 1, context.Canceled: 0} {
			var log bytes.Buffer
			h := newMiddleware(t, middleware.Config{
				Store: hanging{}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Rules: []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("k")}},
			}).Handler(ok)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if cause == context.Canceled {
				time.AfterFunc(time.Second, cancel)
			}
			w := serve(h, func(r *http.Request) { *r = *r.WithContext(ctx) })
			if w.Code != 503 || strings.Count(log.String(), "\n") != lines {
				t.Errorf("%v: %d, the log: %q", cause, w.Code, &log)
			}
		}
	})
}
