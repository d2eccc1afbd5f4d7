package middleware_test

import (
	"bytes"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func per(count int64, period time.Duration, burst int64) algorithms.Limit {
	return algorithms.Limit{Count: count, Period: period, Burst: burst}
}

// calls serves requests at times in seconds and wants these statuses.
func calls(t *testing.T, clock *storetest.Clock, h http.Handler, at []float64, statuses []int) []*httptest.ResponseRecorder {
	t.Helper()
	start := clock.Now()
	var ws []*httptest.ResponseRecorder
	for i, s := range at {
		clock.Set(start.Add(time.Duration(s * float64(time.Second))))
		w := serve(h)
		if w.Code != statuses[i] {
			t.Errorf("at %v: %d, want %d", s, w.Code, statuses[i])
		}
		ws = append(ws, w)
	}
	return ws
}

func wantHeaders(t *testing.T, w *httptest.ResponseRecorder, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got := w.Header().Values(name)
		if value == "" && len(got) > 0 || value != "" && (len(got) != 1 || got[0] != value) {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}

func outer(h http.Handler, headers map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	})
}

func TestCases(t *testing.T) {
	clock := storetest.NewClock()
	minute := time.Minute
	limited := func(l ...algorithms.Limit) http.Handler { return limiter(t, clock, l...).Handler(ok) }

	t.Run("KEY-06", func(t *testing.T) {
		m := limiter(t, clock, per(3, minute, 0), per(30, 24*time.Hour, 0))
		start := clock.Now()
		for i, want := range [][2]int64{{2, 29}, {1, 28}, {0, 27}, {0, 27}} {
			clock.Set(start.Add(time.Duration(i) * time.Second))
			d, err := m.Check(httptest.NewRequest("GET", "/", nil))
			if err != nil || d.Results[0].Remaining != want[0] || d.Results[1].Remaining != want[1] || (d.Refused == 0) != (i == 3) {
				t.Errorf("call %d: %+v, %v", i+1, d, err)
			}
		}
	})
	t.Run("MW-02", func(t *testing.T) {
		m := limiter(t, clock, per(4, minute, 0))
		h := m.Handler(m.Handler(m.Handler(ok)))
		calls(t, clock, h, make([]float64, 5), []int{200, 200, 200, 200, 429})
		two := limiter(t, clock, per(9, minute, 0)).Handler(limited(per(2, minute, 0)))
		calls(t, clock, two, make([]float64, 3), []int{200, 200, 429})
	})
	t.Run("MW-05", func(t *testing.T) {
		cors := map[string]string{"Access-Control-Allow-Origin": "https://app.example", "Access-Control-Expose-Headers": "Retry-After"}
		ws := calls(t, clock, outer(limited(per(1, minute, 0)), cors), []float64{0, 1}, []int{200, 429})
		cors["Retry-After"] = "59"
		wantHeaders(t, ws[1], cors)
	})
	t.Run("PATH-08", func(t *testing.T) {
		only := func(method string) keyfunc.Func {
			return func(r *http.Request) (string, error) {
				if r.Method != method {
					return "", keyfunc.ErrSkip
				}
				return keyfunc.IP(keyfunc.Trust{})(r)
			}
		}
		h := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{Clock: clock.Now}),
			Rules: []middleware.Rule{
				{Policy: policy(t, "get", per(100, minute, 0)), Key: only("GET")},
				{Policy: policy(t, "post", per(10, minute, 0)), Key: only("POST")},
			},
		}).Handler(ok)
		for i := range 61 {
			w := serve(h, func(r *http.Request) {
				if i >= 50 {
					r.Method = "POST"
				}
			})
			if (w.Code == 429) != (i == 60) {
				t.Errorf("call %d: %d", i+1, w.Code)
			}
		}
	})
	t.Run("KEY-05", func(t *testing.T) {
		h := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{Clock: clock.Now}), // keeps a hash of a key
			Rules: []middleware.Rule{{Policy: policy(t, "p", per(1, minute, 0)), Key: keyfunc.Header("X-User-ID")}},
		}).Handler(ok)
		long := strings.Repeat("A", 65536)
		for i, c := range []struct {
			id   string
			code int
		}{{long + "1", 200}, {long + "2", 200}, {long + "1", 429}} {
			if w := serve(h, func(r *http.Request) { r.Header.Set("X-User-ID", c.id) }); w.Code != c.code {
				t.Errorf("call %d: %d", i+1, w.Code)
			}
		}
	})
	t.Run("KEY-13", strangeKeys)
	t.Run("RL-13", costs)
	for _, c := range slices.Concat(headerCases, windowCases, outcomeCases) {
		t.Run(c.id, c.test)
	}
}

// A number that can't be a cost never reaches a store.
func costs(t *testing.T) {
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}), Logger: slog.New(slog.DiscardHandler),
		Rules: []middleware.Rule{{
			Policy: policy(t, "p", per(5, time.Minute, 0)), Key: keyfunc.Const("k"),
			Cost: func(r *http.Request) int64 { return r.ContentLength },
		}},
	})
	for _, c := range []struct {
		cost int64
		code int
	}{{0, 200}, {-1, 503}, {math.MinInt64, 503}, {math.MaxInt64, 429}, {0, 200}} {
		w := serve(m.Handler(ok), func(r *http.Request) { r.ContentLength = c.cost })
		if w.Code != c.code || w.Header().Get("Retry-After") != map[int]string{503: "1"}[c.code] {
			t.Errorf("cost %d: %d %v", c.cost, w.Code, w.Header())
		}
		if c.cost >= 0 {
			wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": "5"}) // nothing is taken
		}
	}
}

func strangeKeys(t *testing.T) {
	var buf bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&buf, nil))
	m := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{}), Logger: logger,
		Rules: []middleware.Rule{{
			Policy: policy(t, "p", per(1, time.Minute, 0)),
			Key:    func(r *http.Request) (string, error) { return r.URL.Query().Get("id"), nil },
		}},
		Denied: func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
			logger.Info("denied", "key", d.Charges[d.Refused].Key) // as somebody might
			w.WriteHeader(http.StatusTooManyRequests)
		},
	})
	h := m.Handler(ok)
	for round, code := range []int{200, 429} {
		for _, query := range []string{"u", "u%00a", "u%00", "u%0D%0ASET%20x%201", "u%FF", "u%FE", "u%7F"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/x?id="+query, nil))
			if w.Code != code {
				t.Errorf("round %d, %s: %d", round, query, w.Code)
			}
		}
	}
	if n := strings.Count(buf.String(), "\n"); n != 7 {
		t.Errorf("%d log lines for 7 denials:\n%s", n, &buf)
	}
}
