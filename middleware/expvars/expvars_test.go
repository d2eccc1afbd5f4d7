package expvars_test

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/middleware/expvars"
	"github.com/weirgo/weir/store/memstore"
)

func handler(t testing.TB, observe func(context.Context, middleware.Event)) http.Handler {
	t.Helper()
	rule := func(name string, n int64) middleware.Rule {
		p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, algorithms.PerHour(n))
		if err != nil {
			t.Fatal(err)
		}
		return middleware.Rule{Policy: p, Key: keyfunc.Const("a personal key")}
	}
	rules := []middleware.Rule{rule("user", 10), rule("trial", 3)}
	rules[1].Shadow = true
	m, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{}), Rules: rules, Observe: observe, ObserveKeys: true,
		Skip: func(r *http.Request) bool { return r.Method == http.MethodOptions },
	})
	if err != nil {
		t.Fatal(err)
	}
	return m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

func TestCounts(t *testing.T) {
	m := new(expvar.Map)
	observe := expvars.New(m)
	again := expvars.New(m) // adds to the same numbers
	h, other := handler(t, observe), handler(t, again)
	for range 12 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	other.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("OPTIONS", "/", nil))

	var got map[string]any
	if err := json.Unmarshal([]byte(m.String()), &got); err != nil {
		t.Fatal(err)
	}
	if us, ok := got["store_us"].(float64); !ok || us < 0 {
		t.Errorf("store_us: %v", got["store_us"])
	}
	delete(got, "store_us")
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"allowed":11,"exempted":1,"policies":{"trial":{"asked":13,"near":1,"would_limit":9},"user":{"asked":13,"limited":2,"near":2}},"refused":2,"store_calls":13}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// Nothing is lost where many begin at once.
func TestConcurrentCounts(t *testing.T) {
	for range 50 {
		m := new(expvar.Map)
		h := handler(t, expvars.New(m))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			})
		}
		all.Wait()
		var got struct {
			Allowed  int
			Policies map[string]struct{ Asked int }
		}
		if err := json.Unmarshal([]byte(m.String()), &got); err != nil {
			t.Fatal(err)
		}
		if got.Allowed != 8 || got.Policies["user"].Asked != 8 || got.Policies["trial"].Asked != 8 {
			t.Fatalf("%+v", got)
		}
	}
}

func ExampleNew() {
	p, err := algorithms.NewPolicy("ip", algorithms.GCRA{}, algorithms.PerHour(1))
	if err != nil {
		panic(err)
	}
	counts := expvar.NewMap("rate_limits") // at /debug/vars
	limit, err := middleware.New(middleware.Config{
		Store:   memstore.New(memstore.Config{}),
		Rules:   []middleware.Rule{{Policy: p, Key: keyfunc.IP(keyfunc.Trust{})}},
		Observe: expvars.New(counts),
	})
	if err != nil {
		panic(err)
	}
	h := limit.Handler(http.NotFoundHandler())
	for range 3 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	fmt.Println(counts.Get("allowed"), counts.Get("refused"), counts.Get("policies"))
	// Output: 1 2 {"ip": {"asked": 3, "limited": 2, "near": 1}}
}
