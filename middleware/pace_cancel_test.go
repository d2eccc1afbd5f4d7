package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
)

// Failed is told why a held request ended, and the log too if it was not the
// client that went; then and there, while the others wait without a goroutine of
// their own.
func TestPaceCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		seen := make(chan error, 9)
		c := paced(t, algorithms.LeakyBucket{}, per(1, second, 9))
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Failed = func(w http.ResponseWriter, r *http.Request, err error) {
			seen <- err
			middleware.DefaultFailed(w, r, err)
		}
		c.Rules[0].Cost = nil
		h := newMiddleware(t, c).Handler(ok)
		before := bubbled()
		ctx, cancel := context.WithCancel(context.Background())
		var served atomic.Int64
		for range 5 {
			go func() {
				if serve(h, func(r *http.Request) { *r = *r.WithContext(ctx) }).Code == 200 {
					served.Add(1)
				}
			}()
			synctest.Wait()
		}
		if n := bubbled() - before; n != 4 {
			t.Errorf("%d goroutines for 4 requests that are held", n)
		}
		time.Sleep(3 * second / 2)
		cancel()
		synctest.Wait()
		if n := bubbled() - before; n != 0 || served.Load() != 2 {
			t.Errorf("%d are still held, %d served; want 0 and 2", n, served.Load())
		}
		for range 3 {
			if err := <-seen; !errors.Is(err, context.Canceled) || log.Len() > 0 {
				t.Errorf("%v, the log: %s", err, &log)
			}
		}
		timed, cancel := context.WithTimeout(context.Background(), second)
		defer cancel()
		w := serve(h, func(r *http.Request) { *r = *r.WithContext(timed) })
		if err := <-seen; w.Code != 503 || !errors.Is(err, context.DeadlineExceeded) || log.Len() > 0 { // it was decided
			t.Errorf("%d, %v, the log: %s", w.Code, err, &log)
		}
	})
}

// bubbled is how many goroutines there are in bubbles.
func bubbled() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
}

// late is a context that is done at a time, but has not said so yet.
type late struct {
	context.Context
	at time.Time
}

func (l late) Err() error {
	if time.Now().Before(l.at) {
		return nil
	}
	return context.Canceled
}

// A request that ends at the moment its turn comes is not served.
func TestPaceTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newMiddleware(t, paced(t, algorithms.LeakyBucket{}, per(1, second, 9))).Handler(ok)
		for i, code := range []int{200, 503} {
			w := serve(h, func(r *http.Request) {
				*r, r.ContentLength = *r.WithContext(late{r.Context(), time.Now().Add(second)}), 1
			})
			if w.Code != code {
				t.Errorf("request %d: %d, want %d", i, w.Code, code)
			}
		}
	})
}
