package middleware_test

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// headerCases are those of TestCases that are about headers.
var headerCases = []struct {
	id   string
	test func(*testing.T)
}{
	{"HDR-01", underASecond},
	{"HDR-02", waitIsEnough},
	{"HDR-03", waitIsWhole},
	{"HDR-08", lastUnit},
	{"HDR-09", noWaitWhenAllowed},
	{"HDR-10", nestedOnce},
	{"HDR-11", nestedRefusal},
	{"HDR-12", countsToZero},
	{"HDR-13", whateverTheHandler},
	{"HDR-14", resetUnit},
	{"HDR-15", refusalIsNotStored},
	{"HDR-16", writeOrder},
	{"GC-08", resetIsNotNegative},
}

// limitedBy is a clock, and what makes a handler with limits by it.
func limitedBy(t *testing.T) (*storetest.Clock, func(...algorithms.Limit) http.Handler) {
	clock := storetest.NewClock()
	return clock, func(l ...algorithms.Limit) http.Handler { return limiter(t, clock, l...).Handler(ok) }
}

func underASecond(t *testing.T) {
	clock, limited := limitedBy(t)
	ws := calls(t, clock, limited(per(10, time.Second, 1)), []float64{0, 0, 0.1}, []int{200, 429, 200})
	wantHeaders(t, ws[1], map[string]string{"Retry-After": "1"})
}

func waitIsEnough(t *testing.T) {
	clock, limited := limitedBy(t)
	ws := calls(t, clock, limited(per(2, 5*time.Second, 1)), []float64{0, 1, 3}, []int{200, 429, 200})
	for i, want := range []string{"", "2", ""} {
		wantHeaders(t, ws[i], map[string]string{"Retry-After": want})
	}
}

func waitIsWhole(t *testing.T) {
	clock, limited := limitedBy(t)
	ws := calls(t, clock, limited(per(2, time.Second, 1)), []float64{0, 0.007}, []int{200, 429})
	if v := ws[1].Header().Get("Retry-After"); v != "1" || !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(v) {
		t.Errorf("Retry-After %q", v)
	}
}

func lastUnit(t *testing.T) {
	clock, limited := limitedBy(t)
	h := limited(per(1, time.Second, 10))
	at, statuses := make([]float64, 11), []int{200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 429}
	ws := calls(t, clock, h, at, statuses)
	wantHeaders(t, ws[9], map[string]string{"X-RateLimit-Remaining": "0", "Retry-After": ""})
	wantHeaders(t, ws[10], map[string]string{"X-RateLimit-Remaining": "0", "Retry-After": "1"})
}

func noWaitWhenAllowed(t *testing.T) {
	_, limited := limitedBy(t)
	wantHeaders(t, serve(limited(per(5, time.Minute, 0))), map[string]string{"Retry-After": "", "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "4"})
}

func nestedOnce(t *testing.T) {
	clock, limited := limitedBy(t)
	for _, order := range [][2]int64{{100, 10}, {10, 100}} { // inner stricter, outer stricter
		h := limiter(t, clock, per(order[0], time.Minute, 0)).Handler(limited(per(order[1], time.Minute, 0)))
		wantHeaders(t, serve(h), map[string]string{"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "9", "X-RateLimit-Reset": "6"})
	}
}

func nestedRefusal(t *testing.T) {
	clock, limited := limitedBy(t)
	h := limiter(t, clock, per(100, time.Minute, 0)).Handler(limited(per(1, time.Minute, 0)))
	ws := calls(t, clock, h, []float64{0, 1}, []int{200, 429})
	wantHeaders(t, ws[1], map[string]string{"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "59", "Retry-After": "59"})
}

func countsToZero(t *testing.T) {
	_, limited := limitedBy(t)
	h := limited(per(10, time.Minute, 0))
	for i := range 11 {
		w := serve(h)
		wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": strconv.Itoa(max(0, 9-i))})
		if (w.Code == 429) != (i == 10) {
			t.Errorf("call %d: %d", i+1, w.Code)
		}
	}
}

func whateverTheHandler(t *testing.T) {
	clock := storetest.NewClock()
	n := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		switch n {
		case 2:
			w.WriteHeader(500)
		case 3:
			panic("in the handler")
		}
	})
	inner := limiter(t, clock, per(3, time.Minute, 0)).Handler(handler)
	recovered := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(500)
			}
		}()
		inner.ServeHTTP(w, r)
	})
	ws := calls(t, clock, recovered, []float64{0, 1, 2, 3}, []int{200, 500, 500, 429})
	for i, want := range []string{"2", "1", "0", "0"} {
		wantHeaders(t, ws[i], map[string]string{"X-RateLimit-Limit": "3", "X-RateLimit-Remaining": want})
		if ws[i].Header().Get("X-RateLimit-Reset") == "" {
			t.Errorf("call %d: no reset", i+1)
		}
	}
}

// The unit of a reset is the one that was asked for, whatever the answer.
func resetUnit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		for _, as := range []middleware.ResetFormat{middleware.DeltaSeconds, middleware.UnixSeconds, middleware.RFC3339} {
			h := newMiddleware(t, middleware.Config{
				Store: memstore.New(memstore.Config{}), Headers: middleware.Headers{ResetAs: as},
				Rules: []middleware.Rule{with(t, "p", algorithms.GCRA{}, per(5, time.Hour, 0))},
			}).Handler(ok)
			for i := range 6 {
				reset := time.Duration(min(i+1, 5)) * 720 * time.Second
				want := []string{strconv.Itoa(int(reset.Seconds())), strconv.FormatInt(start.Add(reset).Unix(), 10), start.Add(reset).UTC().Format(time.RFC3339)}[as]
				wantHeaders(t, serve(h), map[string]string{"X-RateLimit-Reset": want})
			}
		}
	})
}

func refusalIsNotStored(t *testing.T) {
	clock, limited := limitedBy(t)
	h := outer(limited(per(1, time.Minute, 0)), map[string]string{"Cache-Control": "public, max-age=300", "Content-Type": "image/png", "Content-Length": "7", "Etag": `"x"`})
	ws := calls(t, clock, h, []float64{0, 1}, []int{200, 429})
	wantHeaders(t, ws[0], map[string]string{"Cache-Control": "public, max-age=300"})
	wantHeaders(t, ws[1], map[string]string{"Cache-Control": "no-store", "Content-Type": "text/plain; charset=utf-8", "Content-Length": "", "Etag": ""})
}

func resetIsNotNegative(t *testing.T) {
	clock := storetest.NewClock()
	h := newMiddleware(t, middleware.Config{
		Store: memstore.New(memstore.Config{Clock: clock.Now}),
		Rules: []middleware.Rule{with(t, "p", algorithms.GCRA{}, per(30, time.Minute, 16), byCost)},
	}).Handler(ok)
	wantHeaders(t, serve(h), map[string]string{"X-RateLimit-Remaining": "15", "X-RateLimit-Reset": "2"})
	clock.Advance(time.Hour)
	w := serve(h, ofSize(17))
	wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": "16", "X-RateLimit-Reset": "0", "Retry-After": ""})
	if w.Code != 429 {
		t.Errorf("%d", w.Code)
	}
}

func writeOrder(t *testing.T) {
	var serverLog bytes.Buffer
	handlers := []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) },
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) },
		func(http.ResponseWriter, *http.Request) {},
		func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", 500) },
	}
	m := limiter(t, storetest.NewClock(), per(5, time.Minute, 0))
	s := httptest.NewUnstartedServer(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		handlers[n](w, r)
	})))
	s.Config.ErrorLog = log.New(&serverLog, "", 0)
	s.Start()
	for i, status := range []int{204, 200, 200, 500} {
		resp, err := s.Client().Get(fmt.Sprintf("%s/%d", s.URL, i))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("handler %d: %d", i, resp.StatusCode)
		}
		for _, name := range []string{"Limit", "Remaining", "Reset"} {
			if resp.Header.Get("X-RateLimit-"+name) == "" {
				t.Errorf("handler %d: no %s", i, name)
			}
		}
	}
	s.Close()
	if serverLog.Len() > 0 {
		t.Errorf("the server's log: %s", &serverLog)
	}
}
