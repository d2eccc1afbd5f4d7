package adapters_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
)

// outcome is a limiter of rules that give back what fails, by the time of a bubble.
func outcome(t *testing.T, a algorithms.Algorithm, limits ...algorithms.Limit) layer {
	t.Helper()
	config := middleware.Config{Store: backend(t, nil)}
	for i, l := range limits {
		p, err := algorithms.NewPolicy("p"+strconv.Itoa(i), a, l)
		if err != nil {
			t.Fatal(err)
		}
		config.Rules = append(config.Rules, middleware.Rule{
			Policy: p, Key: keyfunc.Const("k"), Cost: headerCost,
			Refund: func(status int) bool { return status >= 500 },
		})
	}
	m, err := middleware.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return limit(m)
}

// answer is the answer to a request with a cost.
func answer(t *testing.T, h http.Handler, cost string, lines ...string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, ask{lines: append(lines, "X-Cost: "+cost)}.request(t))
	return w
}

func want(t *testing.T, what string, w *httptest.ResponseRecorder, status int, remaining string) {
	t.Helper()
	if got := w.Header().Get("X-RateLimit-Remaining"); w.Code != status || got != remaining {
		t.Errorf("%s: %d with %s left, want %d with %s", what, w.Code, got, status, remaining)
	}
}

// mw07 has a handler that ends in the next window, while others are served.
func mw07(t *testing.T) {
	for name, a := range map[string]algorithms.Algorithm{"first charge": algorithms.FixedWindow{}, "aligned": algorithms.FixedWindow{Aligned: true}} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, serve func(app) http.Handler) {
				synctest.Test(t, func(t *testing.T) {
					slow := make(chan struct{})
					h := serve(app{layers: []layer{outcome(t, a, per(5, time.Minute, 0))}, routes: []route{{"GET", "/", func(w http.ResponseWriter, r *http.Request) {
						if r.Header.Get("X-Slow") != "" {
							<-slow
							w.WriteHeader(503)
						}
					}}}})
					want(t, "at 0", answer(t, h, "1"), 200, "4") // opens the window
					time.Sleep(59500 * time.Millisecond)
					served := make(chan struct{})
					go func() {
						defer close(served)
						answer(t, h, "1", "X-Slow: 1")
					}()
					time.Sleep(time.Second)
					for i, left := range []string{"4", "3", "2", "1", "0"} {
						want(t, "at 60.5, call "+strconv.Itoa(i), answer(t, h, "1"), 200, left)
					}
					want(t, "at 60.5", answer(t, h, "1"), 429, "0")
					time.Sleep(500 * time.Millisecond)
					close(slow)
					<-served
					time.Sleep(time.Second)
					want(t, "at 62", answer(t, h, "1"), 429, "0")
				})
			})
		})
	}
}

// mw08 gives back what was taken and not more.
func mw08(t *testing.T) {
	for name, a := range map[string]algorithms.Algorithm{"token bucket": algorithms.TokenBucket{}, "gcra": algorithms.GCRA{}, "leaky bucket": algorithms.LeakyBucket{}} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, serve func(app) http.Handler) {
				synctest.Test(t, func(t *testing.T) {
					h := serve(app{layers: []layer{outcome(t, a, per(1, time.Minute, 10))}, routes: []route{{"GET", "/", func(w http.ResponseWriter, r *http.Request) {
						if r.Header.Get("X-Fail") != "" {
							r.Header.Set("X-Cost", "5") // the charge was 1 all the same
							w.WriteHeader(503)
						}
					}}}})
					want(t, "take 1", answer(t, h, "1", "X-Fail: 1"), 503, "9")
					want(t, "peek", answer(t, h, "0"), 200, "10")
					want(t, "take 10", answer(t, h, "10"), 200, "0")
					want(t, "take 1", answer(t, h, "1"), 429, "0")
				})
			})
		})
	}
}

// mr01 has two windows, of which the long one counts what was served.
func mr01(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		synctest.Test(t, func(t *testing.T) {
			var left int64
			h := serve(app{
				layers: []layer{outcome(t, algorithms.FixedWindow{Aligned: true}, per(10, time.Minute, 0), per(30, 30*time.Minute, 0))},
				routes: []route{{"GET", "/", func(_ http.ResponseWriter, r *http.Request) {
					d, _ := middleware.FromContext(r.Context())
					left = d.Results[1].Remaining
				}}},
			})
			start, served := time.Now(), 0 // a bubble's time begins with a whole day
			for i := range 31 {
				time.Sleep(time.Until(start.Add(time.Duration(i) * 120 * time.Second / 31)))
				if answer(t, h, "1").Code == 200 {
					served++
				}
			}
			if served != 20 || left != 10 {
				t.Errorf("%d served, %d left for half an hour; want 20 and 10", served, left)
			}
			time.Sleep(time.Until(start.Add(121 * time.Second)))
			if w := answer(t, h, "1"); w.Code != 200 || left != 9 {
				t.Errorf("at 121: %d, %d left for half an hour; want 200 and 9", w.Code, left)
			}
		})
	})
}
