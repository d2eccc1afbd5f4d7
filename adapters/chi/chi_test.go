package chiadapter_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	chimw "github.com/go-chi/chi/v5/middleware"
	chiadapter "github.com/weirgo/weir/adapters/chi"
	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// limiter allows count a minute; the clock stands still.
func limiter(t testing.TB, count int64, key keyfunc.Func) *middleware.Middleware {
	t.Helper()
	policy, err := algorithms.NewPolicy("p", algorithms.GCRA{}, algorithms.PerMinute(count))
	if err != nil {
		t.Fatal(err)
	}
	m, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{Clock: func() time.Time { return time.Unix(1e9, 0) }}),
		Rules: []middleware.Rule{{Policy: policy, Key: key}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func get(h http.Handler, target string) *httptest.ResponseRecorder {
	return do(h, http.MethodGet, target)
}

func do(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func ok(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") }

func TestRefusalStopsTheChain(t *testing.T) {
	var later, handler int
	sub := chi.NewRouter()
	sub.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { later++; next.ServeHTTP(w, r) })
	})
	sub.Get("/", func(w http.ResponseWriter, r *http.Request) {
		handler++
		if d, ok := middleware.FromContext(r.Context()); !ok || d.Results[0].Remaining != 0 || d.Charges[0].Key != "/a/{id}" {
			t.Errorf("Decision in the handler: %+v, %v", d, ok)
		}
		ok(w, r)
	})
	r := chi.NewRouter()
	r.Use(chiadapter.Middleware(limiter(t, 1, keyfunc.Route)))
	r.Mount("/a/{id}", sub)

	if w := get(r, "/a/1"); w.Code != 200 || w.Body.String() != "ok" || w.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("first: %d %q %v", w.Code, w.Body, w.Header())
	}
	w := get(r, "/a/2")
	if w.Code != 429 || w.Body.String() != "Too Many Requests. Try again in 60 seconds.\n" || w.Header().Get("Retry-After") != "60" {
		t.Errorf("second: %d %q %v", w.Code, w.Body, w.Header())
	}
	if later != 1 || handler != 1 {
		t.Errorf("ran after the limit: %d, handler %d; want 1 each", later, handler)
	}
}

func TestNil(t *testing.T) {
	r := chi.NewRouter()
	r.Use(chiadapter.Middleware(nil))
	r.Get("/", func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	if w := get(r, "/"); w.Code < 500 {
		t.Errorf("got %d", w.Code)
	}
}

// The context has no router, or one without routes: a middleware like others.
func TestOutsideChi(t *testing.T) {
	m := chiadapter.Middleware(limiter(t, 1, keyfunc.Join(keyfunc.Route, keyfunc.PathValue("id"))))
	mux := http.NewServeMux()
	mux.Handle("GET /a/{id}", m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d, _ := middleware.FromContext(r.Context()); d.Charges[0].Key != "GET /a/{id}|"+r.PathValue("id") {
			t.Errorf("key %q", d.Charges[0].Key)
		}
	})))
	for _, tt := range []struct {
		path string
		want int
	}{{"/a/1", 200}, {"/a/1", 429}, {"/a/%32", 200}, {"/a/2", 429}} {
		if w := get(mux, tt.path); w.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.path, w.Code, tt.want)
		}
	}
	r := httptest.NewRequest("GET", "/a/3", nil)
	r = r.WithContext(contextWith(r, chi.NewRouteContext()))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Errorf("a context without routes: %d", w.Code)
	}
}

// A limit at the top must see a HEAD as the GET that will serve it.
func TestHead(t *testing.T) {
	for name, use := range map[string]func(chi.Router){
		"GetHead": func(r chi.Router) { r.Use(chimw.GetHead) },
		"Head":    func(chi.Router) {},
	} {
		r := chi.NewRouter()
		use(r)
		r.Use(chiadapter.Middleware(limiter(t, 1, keyfunc.Route)))
		r.Get("/report", ok)
		if name == "Head" {
			r.Head("/report", ok)
		}
		get(r, "/report")
		if w := do(r, http.MethodHead, "/report"); w.Code != 429 || w.Body.Len() != 0 || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %q %v", name, w.Code, w.Body, w.Header())
		}
	}
}

// However the path is spelled, the key is one; the handler gets what chi gives.
func TestPathValuesAreDecoded(t *testing.T) {
	limit := chiadapter.Middleware(limiter(t, 1, keyfunc.Join(keyfunc.Route, keyfunc.PathValue("phone"))))
	handler := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.PathValue("phone"), " ", chi.URLParam(r, "phone"))
	}
	top, r := chi.NewRouter(), chi.NewRouter()
	top.Use(limit)
	top.Get("/top/{phone}", handler)
	r.With(limit).Get("/with/{phone}", handler)
	r.Route("/sub/{phone}", func(r chi.Router) {
		r.Use(limit)
		r.Get("/send", handler)
	})
	for _, tt := range []struct {
		h      http.Handler
		format string
	}{{top, "/top/%s"}, {r, "/with/%s"}, {r, "/sub/%s/send"}} {
		for i, phone := range []string{"+1%32%2F3", "%2B12%2F3", "+%31%32%2f3", "%2b1%32%2F3"} {
			w := get(tt.h, fmt.Sprintf(tt.format, phone))
			if want := phone + " " + phone; i == 0 && (w.Code != 200 || w.Body.String() != want) {
				t.Errorf(tt.format+": %d %q, want %q", phone, w.Code, w.Body, want)
			} else if i > 0 && w.Code != 429 {
				t.Errorf(tt.format+": %d, want 429", phone, w.Code)
			}
		}
		// What decodes to another only in a second step is another.
		if w := get(tt.h, fmt.Sprintf(tt.format, "%252B12%2F3")); w.Code != 200 {
			t.Errorf(tt.format+": %d, want 200", "%252B12%2F3", w.Code)
		}
	}
}

// Looks at the routes don't mix.
func TestConcurrent(t *testing.T) {
	r := chi.NewRouter()
	r.Use(chiadapter.Middleware(limiter(t, 1e6, func(r *http.Request) (string, error) { return routeOf(r), nil })))
	var mu sync.Mutex
	got := map[string]bool{}
	r.Route("/a/{org}", func(r chi.Router) {
		r.Use(chiadapter.Middleware(limiter(t, 1e6, func(r *http.Request) (string, error) {
			mu.Lock()
			got[routeOf(r)] = true
			mu.Unlock()
			return "k", nil
		})))
		r.Get("/b/{id}", ok)
	})
	want := map[string]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		want[fmt.Sprintf("/a/{org}/b/{id} org=%d id=%d file= *=", i, i)] = true
		wg.Go(func() {
			for range 200 {
				w := httptest.NewRecorder()
				r.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprintf("/a/%d/b/%d", i, i), nil))
			}
		})
	}
	wg.Wait()
	if !maps.Equal(got, want) {
		t.Errorf("saw %q", slices.Sorted(maps.Keys(got)))
	}
}

func ok204(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) }

// What is decoded already is not decoded again; a handler must not do it either.
func TestEncodedTwice(t *testing.T) {
	r := chi.NewRouter()
	r.Use(chiadapter.Middleware(limiter(t, 1, keyfunc.PathValue("id"))))
	r.Get("/{id}", func(w http.ResponseWriter, r *http.Request) {
		d, _ := middleware.FromContext(r.Context())
		fmt.Fprintf(w, "%s %s %t", d.Charges[0].Key, chi.URLParam(r, "id"), r.URL.RawPath != "")
	})
	for target, want := range map[string]string{"/1": "1 1 false", "/%2531": "%31 %31 false", "/%252%35%31": "%251 %252%35%31 true"} {
		if w := get(r, target); w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", target, w.Code, w.Body, want)
		}
	}
}
