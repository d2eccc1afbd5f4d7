package middleware_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// outcomeCases are those of TestCases that are about what is given back.
var outcomeCases = []struct {
	id   string
	test func(*testing.T)
}{
	{"MW-07", lateRefund},
	{"MW-08", refundIsWhatWasTaken},
	{"RC-04", refundTwice},
	{"SMS-08", providerFails},
}

// bubble runs a test in a bubble, whose time begins with a whole day.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func lateRefund(t *testing.T) {
	for name, a := range map[string]algorithms.Algorithm{"first charge": algorithms.FixedWindow{}, "aligned": algorithms.FixedWindow{Aligned: true}} {
		bubble(t, name, func(t *testing.T) {
			c, _ := refunding(t, serverError)
			c.Rules[0].Policy = policyOf(t, "late", a, per(5, time.Minute, 0))
			h := newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.ContentLength > 0 {
					time.Sleep(1500 * time.Millisecond)
					w.WriteHeader(503)
				}
			}))
			serve(h) // opens the window
			time.Sleep(59500 * time.Millisecond)
			var waiting sync.WaitGroup
			waiting.Go(func() { serve(h, func(r *http.Request) { r.ContentLength = 1 }) })
			time.Sleep(time.Second) // 60.5
			for i := range 6 {
				w := serve(h)
				if (w.Code == 429) != (i == 5) {
					t.Errorf("call %d at 60.5: %d", i+1, w.Code)
				}
				wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": strconv.Itoa(max(0, 4-i))})
			}
			waiting.Wait() // 61
			time.Sleep(time.Second)
			w := serve(h)
			if w.Code != 429 {
				t.Errorf("at 62: %d", w.Code)
			}
			wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": "0"})
		})
	}
}

// What a request costs is asked once; what is given back is what it cost then.
func refundIsWhatWasTaken(t *testing.T) {
	for name, a := range map[string]algorithms.Algorithm{"token bucket": algorithms.TokenBucket{}, "gcra": algorithms.GCRA{}, "leaky bucket": algorithms.LeakyBucket{}} {
		bubble(t, name, func(t *testing.T) {
			c, _ := refunding(t, serverError)
			c.Rules[0].Policy = policyOf(t, "bucket", a, per(1, time.Minute, 10))
			cost, code := int64(1), 503
			c.Rules[0].Cost = func(*http.Request) int64 { return cost }
			h := newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				cost = 5
				w.WriteHeader(code)
			}))
			serve(h)
			code = 200
			for i, step := range []struct {
				cost      int64
				code      int
				remaining string
			}{{0, 200, "10"}, {10, 200, "0"}, {1, 429, "0"}} {
				cost = step.cost
				w := serve(h)
				if w.Code != step.code {
					t.Errorf("step %d: %d, want %d", i, w.Code, step.code)
				}
				wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": step.remaining})
			}
		})
	}
}

func refundTwice(t *testing.T) {
	bubble(t, "gcra", func(t *testing.T) {
		g := newGiving(t, func(c *middleware.Config) { c.Rules[0].Policy = policy(t, "p", per(5, time.Minute, 5)) })
		g.policies = []*algorithms.Policy{policy(t, "p", per(5, time.Minute, 5))}
		g.left(t, 4)
		g.refund(t, "p")
		g.refund(t, "p")
		g.left(t, 5)
	})
}

// The phone's rule is given back, the address's is not.
func providerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := 200
		h := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{}),
			Rules: []middleware.Rule{
				{Policy: policy(t, "phone", per(1, time.Minute, 0)), Key: keyfunc.Const("phone"), Refund: func(code int) bool { return code == 502 }},
				{Policy: policyOf(t, "ip", algorithms.FixedWindow{}, per(3, time.Hour, 0)), Key: keyfunc.IP(keyfunc.Trust{})},
			},
		}).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		start := time.Now()
		for _, call := range []struct {
			at             int
			provider, want int
		}{{0, 502, 502}, {1, 200, 200}, {2, 200, 429}, {62, 200, 200}, {123, 200, 429}} {
			time.Sleep(time.Duration(call.at)*time.Second - time.Since(start))
			code = call.provider
			if w := serve(h); w.Code != call.want {
				t.Errorf("at %d: %d, want %d", call.at, w.Code, call.want)
			}
		}
	})
}
