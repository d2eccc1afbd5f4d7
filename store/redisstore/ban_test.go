package redisstore_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// A ban beside a rule of every algorithm keeps out who goes on, in Redis as in
// memory: all the same answers.
func TestBan(t *testing.T) {
	for name, open := range map[string]casetest.Open{"miniredis": openMini, "redis": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if open == nil {
				open = openReal(t)
			}
			for _, a := range casetest.Algorithms() {
				t.Run(casetest.Form(a), func(t *testing.T) { banned(t, open, a) })
			}
		})
	}
}

func banned(t *testing.T, open casetest.Open, a algorithms.Algorithm) {
	clock := storetest.NewClock()
	rule, err := algorithms.NewPolicy("rule", a, algorithms.PerMinute(2))
	if err != nil {
		t.Fatal(err)
	}
	ban, err := algorithms.Ban{Strikes: 3, Within: 10 * time.Minute, For: time.Hour}.Policy("banned")
	if err != nil {
		t.Fatal(err)
	}
	config := middleware.Config{Store: open(t, clock), Ban: ban, Rules: []middleware.Rule{{Policy: rule, Key: keyfunc.Header("X-Client")}}}
	inRedis, err := middleware.New(config)
	if err != nil {
		t.Fatal(err)
	}
	config.Store = memstore.New(memstore.Config{Clock: clock.Now})
	inMemory, err := middleware.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(client string) (status int, wait string) {
		t.Helper()
		var answers [2]string
		for i, m := range []*middleware.Middleware{inRedis, inMemory} {
			r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
			r.Header.Set("X-Client", client)
			m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
			status, wait = w.Code, w.Header().Get("Retry-After")
			answers[i] = fmt.Sprint(w.Code, w.Header())
		}
		if answers[0] != answers[1] {
			t.Errorf("in Redis %s\nin memory %s", answers[0], answers[1])
		}
		return status, wait
	}
	for i, want := range []int{200, 200, 429, 429, 429} {
		if status, _ := ask("a"); status != want {
			t.Fatalf("request %d: %d, want %d", i+1, status, want)
		}
	}
	for range 59 {
		clock.Advance(time.Minute)
		if status, _ := ask("a"); status != http.StatusTooManyRequests {
			t.Fatalf("let in at %v in spite of the ban", clock.Now())
		}
	}
	if _, wait := ask("a"); wait != "60" {
		t.Errorf("a minute before the end, Retry-After is %q", wait)
	}
	if status, _ := ask("b"); status != http.StatusOK {
		t.Errorf("another client is answered with %d", status)
	}
	clock.Advance(time.Minute)
	if status, _ := ask("a"); status != http.StatusOK {
		t.Errorf("after the ban: %d", status)
	}
}
