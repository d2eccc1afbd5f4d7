package adapters_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the zones, wherever the tests run

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/storetest"
)

// headerCases are those about headers that each framework is held to.
func headerCases(t *testing.T) {
	minute := time.Minute
	window, aligned := algorithms.FixedWindow{}, algorithms.FixedWindow{Aligned: true}
	t.Run("HDR-01", headerCase{limits: []algorithms.Limit{per(10, time.Second, 1)}, at: []float64{0, 0, 0.1}, want: []string{"200", "429 retry=1", "200"}}.run)
	t.Run("HDR-02", headerCase{limits: []algorithms.Limit{per(2, 5*time.Second, 1)}, at: []float64{0, 1, 3}, want: []string{"200", "429 retry=2", "200"}}.run)
	t.Run("HDR-03", headerCase{limits: []algorithms.Limit{per(2, time.Second, 1)}, at: []float64{0, 0.007}, want: []string{"200", "429 retry=1"}}.run)
	t.Run("HDR-04", headerCase{
		algorithm: window, limits: []algorithms.Limit{per(10, minute, 0)}, at: []float64{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20},
		want: append(slices.Repeat([]string{"200"}, 10), "429 retry=40"),
	}.run)
	t.Run("HDR-05", aroundTheReset)
	t.Run("HDR-06", inAnyZone)
	t.Run("HDR-07", func(t *testing.T) {
		for name, a := range map[string]algorithms.Algorithm{"first charge": window, "aligned": aligned} {
			t.Run(name, headerCase{
				algorithm: a, limits: []algorithms.Limit{per(2, minute, 0)}, at: []float64{0, 5, 10, 59.2}, reset: true,
				want: []string{"200 reset=60", "200 reset=55", "429 reset=50 retry=50", "429 reset=1 retry=1"},
			}.run)
			t.Run(name+", epoch", func(t *testing.T) {
				epochs(t, a, per(2, minute, 0), []float64{0, 5, 10, 59.2}, []int{200, 200, 429, 429}, minute)
			})
		}
	})
	t.Run("HDR-08", headerCase{
		limits: []algorithms.Limit{per(1, time.Second, 10)}, at: make([]float64, 11), left: true,
		want: []string{"200 left=9", "200 left=8", "200 left=7", "200 left=6", "200 left=5", "200 left=4", "200 left=3", "200 left=2", "200 left=1", "200 left=0", "429 left=0 retry=1"},
	}.run)
	t.Run("HDR-09", headerCase{limits: []algorithms.Limit{per(5, minute, 0)}, at: []float64{0}, limit: true, left: true, want: []string{"200 limit=5 left=4"}}.run)
	t.Run("HDR-10", func(t *testing.T) {
		for name, limits := range map[string][]algorithms.Limit{
			"inner stricter": {per(100, minute, 0), per(10, minute, 0)}, "outer stricter": {per(10, minute, 0), per(100, minute, 0)},
		} {
			t.Run(name, headerCase{nested: true, limits: limits, at: []float64{0}, limit: true, left: true, want: []string{"200 limit=10 left=9"}}.run)
		}
	})
	t.Run("HDR-11", headerCase{
		nested: true, limits: []algorithms.Limit{per(100, minute, 0), per(1, minute, 0)}, at: []float64{0, 1}, limit: true, left: true,
		want: []string{"200 limit=1 left=0", "429 limit=1 left=0 retry=59"},
	}.run)
	t.Run("HDR-12", headerCase{
		limits: []algorithms.Limit{per(10, minute, 0)}, at: make([]float64, 11), left: true,
		want: []string{"200 left=9", "200 left=8", "200 left=7", "200 left=6", "200 left=5", "200 left=4", "200 left=3", "200 left=2", "200 left=1", "200 left=0", "429 left=0 retry=6"},
	}.run)
	t.Run("HDR-14", func(t *testing.T) {
		t.Run("delta", headerCase{
			limits: []algorithms.Limit{per(5, time.Hour, 0)}, at: make([]float64, 6), reset: true,
			want: []string{"200 reset=720", "200 reset=1440", "200 reset=2160", "200 reset=2880", "200 reset=3600", "429 reset=3600 retry=720"},
		}.run)
		t.Run("epoch", func(t *testing.T) {
			epochs(t, aligned, per(5, time.Hour, 0), make([]float64, 6), []int{200, 200, 200, 200, 200, 429}, time.Hour)
		})
	})
	t.Run("HDR-15", refusalIsNotStored)
	t.Run("GC-08", headerCase{
		limits: []algorithms.Limit{per(30, minute, 16)}, at: []float64{0, 3600}, costs: []int64{1, 17}, left: true, reset: true,
		want: []string{"200 left=15 reset=2", "429 left=16 reset=0"},
	}.run)
}

func per(count int64, period time.Duration, burst int64) algorithms.Limit {
	return algorithms.Limit{Count: count, Period: period, Burst: burst}
}

// headerCase is requests at times in seconds, and what the answers say: the status,
// and limit, left, reset where they are asked about, and retry where it is there.
type headerCase struct {
	algorithm          algorithms.Algorithm // nil: GCRA
	limits             []algorithms.Limit
	nested             bool // a Middleware for each limit, the first outermost
	at                 []float64
	costs              []int64 // nil: 1 each
	limit, left, reset bool
	want               []string
}

func (c headerCase) run(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		clock := storetest.NewClock()
		start := clock.Now()
		h := serve(app{layers: c.layers(t, clock.Now, middleware.Headers{}), routes: []route{{"GET", "/", fine}}})
		for i, s := range c.at {
			clock.Set(start.Add(time.Duration(s * float64(time.Second))))
			a := ask{}
			if c.costs != nil {
				a.lines = []string{"X-Cost: " + strconv.FormatInt(c.costs[i], 10)}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, a.request(t))
			if got := c.says(t, w); got != c.want[i] {
				t.Errorf("request %d: %s, want %s", i, got, c.want[i])
			}
		}
	})
}

func (c headerCase) layers(t *testing.T, now func() time.Time, headers middleware.Headers) (all []layer) {
	t.Helper()
	config := middleware.Config{Store: backend(t, now), Headers: headers}
	for i, l := range c.limits {
		a := c.algorithm
		if a == nil {
			a = algorithms.GCRA{}
		}
		p, err := algorithms.NewPolicy(fmt.Sprint("p", i), a, l)
		if err != nil {
			t.Fatal(err)
		}
		config.Rules = append(config.Rules, middleware.Rule{Policy: p, Key: keyfunc.Const("k"), Cost: headerCost})
		if c.nested || i == len(c.limits)-1 {
			m, err := middleware.New(config)
			if err != nil {
				t.Fatal(err)
			}
			all, config.Rules = append(all, limit(m)), nil
		}
	}
	return all
}

// headerCost is the cost that a request names, or 1.
func headerCost(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.Header.Get("X-Cost"), 10, 64)
	if err != nil {
		return 1
	}
	return n
}

func (c headerCase) says(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	says := strconv.Itoa(w.Code)
	for _, one := range []struct {
		word, name string
		asked      bool
	}{
		{"limit", "X-RateLimit-Limit", c.limit}, {"left", "X-RateLimit-Remaining", c.left}, {"reset", "X-RateLimit-Reset", c.reset},
		{"retry", "Retry-After", w.Header().Get("Retry-After") != ""},
	} {
		values := w.Header().Values(one.name)
		if len(values) > 1 || len(values) == 0 && one.name != "Retry-After" {
			t.Errorf("%s: %q", one.name, values)
		}
		if one.asked {
			says += " " + one.word + "=" + strings.Join(values, ",")
		}
	}
	return says
}

// epochs wants the same reset, so long after the start, from every answer.
func epochs(t *testing.T, a algorithms.Algorithm, l algorithms.Limit, at []float64, codes []int, reset time.Duration) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		synctest.Test(t, func(t *testing.T) { // by memstore's own clock
			start := time.Now()
			c := headerCase{algorithm: a, limits: []algorithms.Limit{l}}
			h := serve(app{layers: c.layers(t, nil, middleware.Headers{ResetAs: middleware.UnixSeconds}), routes: []route{{"GET", "/", fine}}})
			for i, s := range at {
				time.Sleep(time.Until(start.Add(time.Duration(s * float64(time.Second)))))
				w := httptest.NewRecorder()
				h.ServeHTTP(w, ask{}.request(t))
				want := strconv.FormatInt(start.Add(reset).Unix(), 10)
				if got := w.Header().Get("X-RateLimit-Reset"); w.Code != codes[i] || got != want {
					t.Errorf("at %v s: %d, reset %s; want %d, %s", s, w.Code, got, codes[i], want)
				}
			}
		})
	})
}

func aroundTheReset(t *testing.T) {
	for name, a := range map[string]algorithms.Algorithm{
		"fixed window": algorithms.FixedWindow{}, "aligned window": algorithms.FixedWindow{Aligned: true}, "sliding log": algorithms.SlidingLog{},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, serve func(app) http.Handler) {
				clock := storetest.NewClock()
				c := headerCase{algorithm: a, limits: []algorithms.Limit{per(2, 2*time.Second, 0)}}
				h := serve(app{layers: c.layers(t, clock.Now, middleware.Headers{}), routes: []route{{"GET", "/", fine}}})
				passed := 0
				for i := range 400 {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, ask{}.request(t))
					within := func(name string, least, most int) {
						n, err := strconv.Atoi(w.Header().Get(name))
						if err != nil || n < least || n > most {
							t.Errorf("at %d0 ms: %d, %s %q", i, w.Code, name, w.Header()[name])
						}
					}
					within("X-RateLimit-Remaining", 0, 2)
					within("X-RateLimit-Reset", 0, 2)
					if _, there := w.Header()["Retry-After"]; there != (w.Code == 429) {
						t.Errorf("at %d0 ms: %d %v", i, w.Code, w.Header())
					} else if there {
						within("Retry-After", 1, 2)
					} else {
						passed++
					}
					clock.Advance(10 * time.Millisecond)
				}
				if passed != 4 {
					t.Errorf("%d passed in 4 s, want 4", passed)
				}
			})
		})
	}
}

// inAnyZone asks a process for each time zone, because it is read at the start.
func inAnyZone(t *testing.T) {
	if os.Getenv("WEIR_ZONE_CHILD") != "" {
		_, offset := time.Now().Zone()
		c := headerCase{
			algorithm: algorithms.FixedWindow{}, limits: []algorithms.Limit{per(10, 300*time.Second, 0)}, at: make([]float64, 11),
			reset: true, want: append(slices.Repeat([]string{"200 reset=300"}, 10), "429 reset=300 retry=300"),
		}
		c.run(t)
		epochs(t, algorithms.FixedWindow{}, per(10, 300*time.Second, 0), make([]float64, 11), append(slices.Repeat([]int{200}, 10), 429), 300*time.Second)
		fmt.Printf("offset=%d failed=%t\n", offset, t.Failed())
		return
	}
	for _, zone := range []string{"UTC", "Europe/Vienna", "America/St_Johns"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		_, offset := time.Now().In(location).Zone()
		cmd := exec.Command(os.Args[0], "-test.run=^TestCases$/^HDR-06$")
		cmd.Env = append(os.Environ(), "WEIR_ZONE_CHILD=1", "TZ="+zone)
		out, err := cmd.CombinedOutput()
		if want := fmt.Sprintf("offset=%d failed=false\n", offset); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("TZ=%s: %v\n%s; want %s", zone, err, out, want)
		}
	}
}

func refusalIsNotStored(t *testing.T) {
	cached := plain(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=300")
			w.Header().Set("Content-Type", "image/png")
			w.Header().Set("Etag", `"x"`)
			next.ServeHTTP(w, r)
		})
	})
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 1, perIP)
		h := serve(app{layers: []layer{cached, limit(l.Middleware)}, routes: []route{{"GET", "/", fine}}})
		answers := l.want(t, h, []int{200, 429}, ask{}, ask{})
		for i, want := range []map[string]string{
			{"Cache-Control": "public, max-age=300", "Content-Type": "image/png", "Etag": `"x"`},
			{"Cache-Control": "no-store", "Content-Type": "text/plain; charset=utf-8", "Etag": ""},
		} {
			for name, value := range want {
				if got := strings.Join(answers[i].Header().Values(name), " | "); got != value {
					t.Errorf("request %d: %s %q, want %q", i, name, got, value)
				}
			}
		}
	})
}
