package middleware_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// What was used stays used, and an error changes nothing.
func TestReconfigure(t *testing.T) {
	s := memstore.New(memstore.Config{})
	config := func(n int64) middleware.Config {
		return middleware.Config{
			Store:   s,
			Rules:   []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(n)), Key: keyfunc.Const("k")}},
			Headers: middleware.Headers{Prefix: fmt.Sprintf("X-%d-", n)},
		}
	}
	m := newMiddleware(t, config(5))
	h := m.Handler(ok)
	want := func(status int, name, remaining string) {
		t.Helper()
		w := serve(h)
		if w.Code != status || w.Header().Get(name) != remaining {
			t.Errorf("%d %v; want %d, %s: %s", w.Code, w.Header(), status, name, remaining)
		}
	}
	want(200, "X-5-Remaining", "4")
	want(200, "X-5-Remaining", "3")
	if err := m.Reconfigure(config(3)); err != nil {
		t.Fatal(err)
	}
	want(200, "X-3-Remaining", "0")
	want(429, "X-3-Remaining", "0")
	if err := m.Reconfigure(middleware.Config{}); err == nil {
		t.Error("an empty Config is accepted")
	}
	want(429, "X-3-Remaining", "0")
	if err := m.Reconfigure(config(10)); err != nil {
		t.Fatal(err)
	}
	want(200, "X-10-Remaining", "6")
	if err := (*middleware.Middleware)(nil).Reconfigure(config(1)); err == nil {
		t.Error("a nil Middleware is reconfigured")
	}
}

// No request is decided by half a configuration: number i has i+1 rules, of
// policies, keys, headers, answers and refunds of its own.
func TestReconfigureUnderLoad(t *testing.T) {
	const configs = 4
	s := memstore.New(memstore.Config{})
	var wrong atomic.Int64
	config := func(i int) middleware.Config {
		mine := fmt.Sprintf("c%d", i)
		c := middleware.Config{
			Store:   s,
			Headers: middleware.Headers{Prefix: "X-" + mine + "-"},
			Denied: func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
				if d.RefusedBy() != mine+"-0" || w.Header().Get("X-"+mine+"-Limit") != fmt.Sprint(i+1) {
					wrong.Add(1)
				}
				w.Header().Set("X-Denied", mine)
				w.WriteHeader(http.StatusTooManyRequests)
			},
		}
		for rule := range i + 1 {
			limit := algorithms.PerHour(1 << 40)
			if rule == 0 {
				limit = algorithms.PerHour(int64(i + 1))
			}
			c.Rules = append(c.Rules, middleware.Rule{
				Policy: policy(t, fmt.Sprintf("%s-%d", mine, rule), limit),
				Key:    keyfunc.Const(mine),
				Refund: func(status int) bool {
					if status != 200+i {
						wrong.Add(1)
					}
					return true // so that it never runs out for long
				},
			})
		}
		return c
	}
	m := newMiddleware(t, config(0))
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, ok := middleware.FromContext(r.Context())
		if !ok || len(d.Charges) == 0 {
			wrong.Add(1)
			return
		}
		mine := d.Charges[0].Key
		for i, c := range d.Charges {
			if c.Key != mine || c.Policy.Name() != fmt.Sprintf("%s-%d", mine, i) || len(d.Charges) != int(mine[1]-'0')+1 {
				wrong.Add(1)
			}
		}
		if w.Header().Get("X-"+mine+"-Remaining") == "" {
			wrong.Add(1)
		}
		w.WriteHeader(200 + int(mine[1]-'0'))
	}))
	stop := make(chan struct{})
	var swaps, served sync.WaitGroup
	swaps.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				if err := m.Reconfigure(config(i % configs)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 4 {
		served.Go(func() {
			for range 2000 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
				names := 0
				for name := range w.Header() {
					if strings.HasSuffix(name, "-Limit") {
						names++
						if denied := w.Header().Get("X-Denied"); w.Code == 429 && !strings.EqualFold(name, "X-"+denied+"-Limit") {
							wrong.Add(1)
						}
					}
				}
				if names != 1 {
					wrong.Add(1)
				}
			}
		})
	}
	served.Wait()
	close(stop)
	swaps.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d requests had parts of two configurations", n)
	}
}

func TestBypass(t *testing.T) {
	var log bytes.Buffer
	var outcomes []string
	m := newMiddleware(t, middleware.Config{
		Store:   memstore.New(memstore.Config{}),
		Logger:  slog.New(slog.NewTextHandler(&log, nil)),
		Rules:   []middleware.Rule{{Policy: policy(t, "p", algorithms.PerHour(1)), Key: keyfunc.Const("k")}},
		Block:   func(r *http.Request) (bool, error) { return r.Header.Get("X-Bad") != "", nil },
		Observe: outcomesTo(&outcomes),
	})
	h := m.Handler(ok)
	bad := func(r *http.Request) { r.Header.Set("X-Bad", "1") }
	want := func(statuses ...int) {
		t.Helper()
		for i, change := range []func(*http.Request){func(*http.Request) {}, bad} {
			if w := serve(h, change); w.Code != statuses[i] || (w.Header().Get("X-RateLimit-Limit") != "") != (statuses[1] == 403 && i == 0) {
				t.Errorf("%d %v, want %d", w.Code, w.Header(), statuses[i])
			}
		}
	}
	want(200, 403)
	m.Bypass(true)
	m.Bypass(true)
	want(200, 200)
	want(200, 200)
	r := httptest.NewRequest("GET", "/", nil)
	if d, err := m.Check(r); err != nil || d.Refused != -1 || len(d.Charges) != 0 {
		t.Errorf("Check: %v, %v", d, err)
	}
	m.Bypass(false)
	want(429, 403)
	if got := strings.Join(outcomes, " "); got != "allowed blocked bypassed bypassed bypassed bypassed bypassed refused blocked" {
		t.Errorf("outcomes: %s", got)
	}
	if got := log.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "level=WARN") != 2 || !strings.Contains(got, "bypassed") || !strings.Contains(got, "enforced again") {
		t.Errorf("the log: %s", got)
	}
	(*middleware.Middleware)(nil).Bypass(true)
	if w := serve((*middleware.Middleware)(nil).Handler(ok)); w.Code != 500 {
		t.Errorf("nil: %d", w.Code)
	}
}
