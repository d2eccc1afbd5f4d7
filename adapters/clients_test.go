package adapters_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	chimw "github.com/go-chi/chi/v5/middleware"
	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"go.uber.org/goleak"
)

// setup is a framework with a limiter in it, of 10 an hour.
type setup struct {
	name      string
	framework string // that the handlers see
	refund    bool   // what is served is given back, by a rule that counts by outcome
	told      chan int
	served    chan struct{} // a request's end, also where its client saw none
	limit     *middleware.Middleware
	store     *memstore.Store
	policy    *algorithms.Policy
	serve     func([]route) http.Handler
}

// wrappers are writers between the server and the handler: chi's own, which its
// loggers use, and that of gin, which is there always.
var wrappers = layer{chiWrapper, chiWrapper, gin.LoggerWithWriter(io.Discard)}

func chiWrapper(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(chimw.NewWrapResponseWriter(w, r.ProtoMajor), r)
	})
}

// eachSetup runs test for all frameworks, with and without a rule that counts by
// outcome, and with wrappers around the limiter and in it.
func eachSetup(t *testing.T, test func(t *testing.T, s *setup)) {
	for _, refund := range []bool{false, true} {
		run := func(name, framework string, serve func(*setup, []route) http.Handler) {
			s := &setup{name: name, framework: framework, refund: refund, told: make(chan int, 9), served: make(chan struct{}, 9)}
			if refund {
				s.name += "/refund"
			}
			t.Run(s.name, func(t *testing.T) {
				noLeaks(t)
				s.limits(t)
				s.serve = func(routes []route) http.Handler { return serve(s, routes) }
				test(t, s)
			})
		}
		for _, f := range frameworks {
			for place, layers := range map[string]func(layer) []layer{
				"alone":   func(l layer) []layer { return []layer{l} },
				"inside":  func(l layer) []layer { return []layer{wrappers, l} },
				"outside": func(l layer) []layer { return []layer{l, wrappers} },
			} {
				run(f.name+"/"+place, f.name, func(s *setup, routes []route) http.Handler {
					return f.serve(app{layers: layers(limit(s.limit)), routes: routes})
				})
			}
		}
		run("nethttp/around gin", "gin", func(s *setup, routes []route) http.Handler {
			return s.limit.Handler(frameworks[2].serve(app{routes: routes}))
		})
	}
}

// limits makes the limiter, by an algorithm whose refunds are exact by any clock.
func (s *setup) limits(t *testing.T) {
	var err error
	if s.policy, err = algorithms.NewPolicy("p", algorithms.SlidingLog{}, algorithms.PerHour(10)); err != nil {
		t.Fatal(err)
	}
	s.store = memstore.New(memstore.Config{})
	rule := middleware.Rule{Policy: s.policy, Key: perIP}
	if s.refund {
		rule.Refund = func(code int) bool { s.told <- code; return code < 400 }
	}
	if s.limit, err = middleware.New(middleware.Config{Store: s.store, Rules: []middleware.Rule{rule}}); err != nil {
		t.Fatal(err)
	}
}

// settled wants a request, once it is served, to have been settled with this status,
// where one counts, and so much to remain of the limit.
func (s *setup) settled(t *testing.T, code int, left int64) {
	t.Helper()
	<-s.served
	if s.refund {
		if got := <-s.told; got != code {
			t.Errorf("Refund is told %d, want %d", got, code)
		}
	}
	s.wantLeft(t, left)
}

func (s *setup) wantLeft(t *testing.T, left int64) {
	t.Helper()
	r, err := store.Take(t.Context(), s.store, s.policy, "127.0.0.1", 0)
	if err != nil || r.Remaining != left {
		t.Errorf("%d remain (%v), want %d", r.Remaining, err, left)
	}
}

// noLeaks wants no goroutine to be left when the test and its clean-up are over.
func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// protocols are those that a client can speak.
var protocols = []struct {
	name  string
	major int
	start func(*httptest.Server)
}{
	{"http1", 1, (*httptest.Server).Start},
	{"http2", 2, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() }},
	{"h2c", 2, func(s *httptest.Server) {
		only := new(http.Protocols)
		only.SetUnencryptedHTTP2(true)
		s.Config.Protocols = only
		s.Start()
		s.Client().Transport.(*http.Transport).Protocols = only
	}},
}

// eachClient runs test for every set-up and every protocol. It starts the server.
func eachClient(t *testing.T, test func(t *testing.T, s *setup, start func(...route) *httptest.Server)) {
	for _, p := range protocols {
		t.Run(p.name, func(t *testing.T) {
			eachSetup(t, func(t *testing.T, s *setup) {
				test(t, s, func(routes ...route) *httptest.Server {
					for i, r := range routes {
						routes[i].handler = func(w http.ResponseWriter, req *http.Request) {
							if req.ProtoMajor != p.major {
								t.Errorf("the client speaks %s", req.Proto)
							}
							r.handler(w, req)
						}
					}
					return s.start(t, s.serve(routes), p.start)
				})
			})
		})
	}
}

// start starts a server that logs nothing.
func (s *setup) start(t *testing.T, h http.Handler, start func(*httptest.Server)) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		s.served <- struct{}{}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(server)
	t.Cleanup(server.Close)
	server.Client().Timeout = time.Minute // what isn't flushed must not hang
	return server
}

// get gets a path, and closes the answer when the test is over.
func get(t *testing.T, server *httptest.Server, path string) *http.Response {
	t.Helper()
	res, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
