package adapters_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// A router's handlers run when the turn of their request has come, and what is
// after the limiter doesn't run for one that ends before.
func TestPace(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		synctest.Test(t, func(t *testing.T) {
			ran := make(chan time.Duration, 5)
			start := time.Now()
			l := newLimiter(t, 4, perIP, func(c *middleware.Config) {
				c.Store = memstore.New(memstore.Config{}) // by the bubble's time
				c.Rules[0].Pace = true
			})
			h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", func(http.ResponseWriter, *http.Request) {
				ran <- time.Since(start)
			}}}})
			leaves, leave := context.WithCancel(t.Context())
			var waiting sync.WaitGroup
			var answers [5]*httptest.ResponseRecorder
			for i := range answers {
				ctx := t.Context()
				if i == 2 {
					ctx = leaves
				}
				waiting.Go(func() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
					answers[i] = w
				})
				synctest.Wait()
			}
			time.Sleep(20 * time.Second)
			leave()
			waiting.Wait()
			for i, want := range []int{200, 200, 503, 200, 429} {
				if w := answers[i]; w.Code != want {
					t.Errorf("request %d: %d, want %d", i, w.Code, want)
				}
				wantRateHeaders(t, answers[i].Header(), []string{"3", "2", "1", "0", "0"}[i])
			}
			close(ran)
			var at []time.Duration
			for d := range ran {
				at = append(at, d)
			}
			if want := []time.Duration{0, 15 * time.Second, 45 * time.Second}; !slices.Equal(at, want) {
				t.Errorf("handled at %v, want %v", at, want)
			}
		})
	})
}
