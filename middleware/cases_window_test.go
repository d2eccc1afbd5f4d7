package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// windowCases are those of TestCases that are about windows.
var windowCases = []struct {
	id   string
	test func(*testing.T)
}{
	{"HDR-04", waitIsWhatIsLeft},
	{"HDR-05", aroundTheReset},
	{"HDR-06", inAnyZone},
	{"HDR-07", resetOfRefusals},
	{"MR-01", longWindowCountsServed},
	{"SMS-07", longWaitIsTold},
}

// counted is a middleware of one rule for each limit, all on one key, that counts
// with a.
func counted(t testing.TB, clock func() time.Time, a algorithms.Algorithm, limits ...algorithms.Limit) *middleware.Middleware {
	t.Helper()
	c := middleware.Config{Store: memstore.New(memstore.Config{Clock: clock})}
	for i, l := range limits {
		c.Rules = append(c.Rules, middleware.Rule{Policy: policyOf(t, fmt.Sprint("p", i), a, l), Key: keyfunc.Const("k")})
	}
	return newMiddleware(t, c)
}

func waitIsWhatIsLeft(t *testing.T) {
	for _, aligned := range []bool{false, true} {
		clock := storetest.NewClock()
		h := counted(t, clock.Now, algorithms.FixedWindow{Aligned: aligned}, per(10, time.Minute, 0)).Handler(ok)
		at := []float64{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20}
		ws := calls(t, clock, h, at, []int{200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 429})
		for i, w := range ws {
			wantHeaders(t, w, map[string]string{"X-RateLimit-Reset": strconv.Itoa(60 - int(at[i]))})
		}
		wantHeaders(t, ws[10], map[string]string{"Retry-After": "40"})
	}
}

func aroundTheReset(t *testing.T) {
	for name, a := range map[string]algorithms.Algorithm{
		"fixed window":         algorithms.FixedWindow{},
		"aligned window":       algorithms.FixedWindow{Aligned: true},
		"sliding log":          algorithms.SlidingLog{},
		"stepped leaky bucket": algorithms.LeakyBucket{Stepped: true},
		"stepped token bucket": algorithms.TokenBucket{Stepped: true},
	} {
		clock := storetest.NewClock()
		h := counted(t, clock.Now, a, per(2, 2*time.Second, 0)).Handler(ok)
		passed := 0
		for i := range 400 {
			w := serve(h)
			header := func(name string, least, most int) {
				s := w.Header().Get(name)
				if n, err := strconv.Atoi(s); err != nil || n < least || n > most {
					t.Errorf("%s at %d0 ms: %d, %s %q", name, i, w.Code, name, s)
				}
			}
			header("X-RateLimit-Remaining", 0, 2)
			header("X-RateLimit-Reset", 0, 2)
			switch w.Code {
			case 200:
				passed++
				wantHeaders(t, w, map[string]string{"Retry-After": ""})
			case 429:
				header("Retry-After", 1, 2)
			default:
				t.Errorf("%s at %d0 ms: %d", name, i, w.Code)
			}
			clock.Advance(10 * time.Millisecond)
		}
		if passed != 4 {
			t.Errorf("%s: %d passed in 4 s, want 4", name, passed)
		}
	}
}

func resetOfRefusals(t *testing.T) {
	for _, aligned := range []bool{false, true} {
		a := algorithms.FixedWindow{Aligned: aligned}
		clock := storetest.NewClock()
		h := counted(t, clock.Now, a, per(2, time.Minute, 0)).Handler(ok)
		at := []float64{0, 5, 10, 59.2}
		ws := calls(t, clock, h, at, []int{200, 200, 429, 429})
		for i, want := range [][2]string{{"60", ""}, {"55", ""}, {"50", "50"}, {"1", "1"}} {
			wantHeaders(t, ws[i], map[string]string{"X-RateLimit-Reset": want[0], "Retry-After": want[1]})
		}
		synctest.Test(t, func(t *testing.T) { // as time of day it stays the same
			start := time.Now()
			h := newMiddleware(t, middleware.Config{
				Store: memstore.New(memstore.Config{}), Headers: middleware.Headers{ResetAs: middleware.UnixSeconds},
				Rules: []middleware.Rule{with(t, "p", a, per(2, time.Minute, 0))},
			}).Handler(ok)
			for _, s := range at {
				time.Sleep(time.Until(start.Add(time.Duration(s * float64(time.Second)))))
				wantHeaders(t, serve(h), map[string]string{"X-RateLimit-Reset": strconv.FormatInt(start.Unix()+60, 10)})
			}
		})
	}
}

// The windows are those of the clock, so that the call at 121 s is in the third.
func longWindowCountsServed(t *testing.T) {
	clock := storetest.NewClock()
	start := clock.Now()
	m := counted(t, clock.Now, algorithms.FixedWindow{Aligned: true}, per(10, time.Minute, 0), per(30, 30*time.Minute, 0))
	var last middleware.Decision
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { last, _ = middleware.FromContext(r.Context()) }))
	served := 0
	for i := range 31 {
		clock.Set(start.Add(time.Duration(i) * 120 * time.Second / 31))
		if serve(h).Code == 200 {
			served++
		}
	}
	if served != 20 || last.Results[1].Remaining != 10 {
		t.Errorf("%d served, %d left for half an hour; want 20 and 10", served, last.Results[1].Remaining)
	}
	clock.Set(start.Add(121 * time.Second))
	if w := serve(h); w.Code != 200 || last.Results[1].Remaining != 9 {
		t.Errorf("at 121: %d, %d left for half an hour; want 200 and 9", w.Code, last.Results[1].Remaining)
	}
}

func longWaitIsTold(t *testing.T) {
	clock := storetest.NewClock()
	m := counted(t, clock.Now, algorithms.SlidingLog{}, per(1, time.Minute, 0), per(5, 24*time.Hour, 0))
	ws := calls(t, clock, m.Handler(ok), []float64{0, 61, 122, 183, 244, 305, 86401}, []int{200, 200, 200, 200, 200, 429, 200})
	wantHeaders(t, ws[5], map[string]string{"Retry-After": "86095", "X-RateLimit-Limit": "5"})
	if d, err := m.Check(httptest.NewRequest("GET", "/", nil)); err != nil || d.Refused != 0 {
		t.Errorf("at once again: %+v, %v; want the minute to refuse", d, err)
	}
}
