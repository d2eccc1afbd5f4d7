package keyfunc_test

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// site is a mux with a limit for each route and client.
type site struct {
	http.Handler
	*counter
	inside bool // the handlers are limited; else the limit is around the mux
}

// eachSide runs a case inside a mux of the patterns and around it.
func eachSide(t *testing.T, limit int, patterns []string, run func(*testing.T, *site)) {
	ip := keyfunc.IP(keyfunc.Trust{})
	t.Run("inside", func(t *testing.T) {
		mux, c := http.NewServeMux(), newCounter(limit, keyfunc.Join(keyfunc.Route, ip))
		for _, p := range patterns {
			mux.Handle(p, c.handler(fine))
		}
		run(t, &site{mux, c, true})
	})
	t.Run("around", func(t *testing.T) {
		mux := http.NewServeMux()
		for _, p := range patterns {
			mux.Handle(p, fine)
		}
		c := newCounter(limit, keyfunc.Join(keyfunc.RouteOf(mux), ip))
		run(t, &site{c.handler(mux), c, false})
	})
}

// asks gives the statuses of requests such as "GET /x" or "PUT /x that means
// POST". The target is sent as it is written.
func (s *site) asks(requests ...string) []int {
	var got []int
	for _, rq := range requests {
		method, target, _ := strings.Cut(rq, " ")
		target, meant, _ := strings.Cut(target, " that means ")
		r := raw(method, "example.com", target)
		r.RemoteAddr = "203.0.113.7:1"
		r.Header.Set("X-HTTP-Method-Override", meant)
		got = append(got, serve(s, r))
	}
	return got
}

// pathCases are the cases of the class path-and-method.
func pathCases(t *testing.T) {
	wantRefused := func(t *testing.T, statuses []int) {
		t.Helper()
		for i, status := range statuses {
			// A ServeMux redirects from other spellings of a path.
			if !slices.Contains([]int{301, 307, 308, 404, 429}, status) {
				t.Errorf("spelling %d: status %d", i, status)
			}
		}
	}

	t.Run("PATH-01", func(t *testing.T) {
		eachSide(t, 2, []string{"PUT /api/v2/users/validate-password"}, func(t *testing.T, s *site) {
			wantStatuses(t, s.asks("PUT /api/v2/users/validate-password", "PUT /api/v2/users/validate-password"), 200, 200)
			wantRefused(t, s.asks("PUT /api/v2/users//validate-password", "PUT //api/v2/users/validate-password"))
			s.wantKeys(t, 1)
		})
	})
	t.Run("PATH-03", func(t *testing.T) {
		eachSide(t, 1, []string{"POST /api/otc/send"}, func(t *testing.T, s *site) {
			wantStatuses(t, s.asks("POST /api/otc/send"), 200)
			wantRefused(t, s.asks("POST /api/otc/%73end", "POST /./api/otc/send", "POST /api/x/../otc/send"))
			s.wantKeys(t, 1)
		})
	})
	t.Run("PATH-05", func(t *testing.T) {
		scan := func(t *testing.T, s *site, passed, limited, keys int) {
			t.Helper()
			got := make(map[int]int)
			for range 10000 {
				got[s.asks("GET /nope/" + strconv.FormatUint(rand.Uint64(), 36))[0]]++
			}
			if got[404] != passed || got[429] != limited {
				t.Errorf("status counts %v, want %d of 404 and %d of 429", got, passed, limited)
			}
			s.wantKeys(t, keys)
		}
		eachSide(t, 5, []string{"/orders/{orderId}/verify"}, func(t *testing.T, s *site) {
			if s.inside {
				scan(t, s, 10000, 0, 0) // no handler of ours is asked
				return
			}
			scan(t, s, 5, 9995, 1)
		})
		t.Run("Route around", func(t *testing.T) {
			c := newCounter(5, keyfunc.Join(keyfunc.Route, keyfunc.IP(keyfunc.Trust{})))
			scan(t, &site{c.handler(http.NewServeMux()), c, false}, 5, 9995, 1)
		})
	})
	t.Run("PATH-06", func(t *testing.T) {
		override := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if m := r.Header.Get("X-HTTP-Method-Override"); m != "" {
					r.Method = m
				}
				next.ServeHTTP(w, r)
			})
		}
		requests := []string{"POST /login", "POST /login", "PUT /login that means POST", "GET /login that means POST"}
		eachSide(t, 2, []string{"POST /login"}, func(t *testing.T, s *site) {
			s.Handler = override(s.Handler)
			wantStatuses(t, s.asks(requests...), 200, 200, 429, 429)
		})
		t.Run("all methods", func(t *testing.T) { // then it may be inside
			mux := http.NewServeMux()
			mux.Handle("/login", fine)
			c := newCounter(2, keyfunc.RouteOf(mux))
			s := &site{c.handler(override(mux)), c, false}
			wantStatuses(t, s.asks(requests...), 200, 200, 429, 429)
		})
	})
	t.Run("PATH-07", func(t *testing.T) {
		requests := []string{"GET /report", "HEAD /report", "HEAD /report", "HEAD /report", "GET /report"}
		eachSide(t, 3, []string{"GET /report"}, func(t *testing.T, s *site) {
			wantStatuses(t, s.asks(requests...), 200, 200, 200, 429, 429)
		})
		c := newCounter(3, keyfunc.Method)
		wantStatuses(t, (&site{c.handler(fine), c, false}).asks(requests...), 200, 200, 200, 429, 429)
	})
	t.Run("PATH-08", func(t *testing.T) {
		ip := keyfunc.IP(keyfunc.Trust{})
		bare := http.NewServeMux()
		bare.Handle("GET /", fine)
		bare.Handle("POST /", fine)
		for name, f := range map[string]keyfunc.Func{"Method": keyfunc.Method, "Route": keyfunc.Route, "RouteOf": keyfunc.RouteOf(bare)} {
			t.Run(name, func(t *testing.T) {
				get, post := newCounter(100, keyfunc.Join(f, ip)), newCounter(10, keyfunc.Join(f, ip))
				post.used = get.used // one store
				mux := http.NewServeMux()
				mux.Handle("GET /", get.handler(fine))
				mux.Handle("POST /", post.handler(fine))
				s := &site{mux, get, true}
				wantStatuses(t, s.asks(slices.Repeat([]string{"GET /"}, 50)...), slices.Repeat([]int{200}, 50)...)
				wantStatuses(t, s.asks(slices.Repeat([]string{"POST /"}, 11)...), append(slices.Repeat([]int{200}, 10), 429)...)
				s.wantKeys(t, 2)
			})
		}
	})
}
