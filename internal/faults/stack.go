package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/breaker"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/resilient"
)

// policy is what a program does while its store is away.
type policy string

const (
	closed   policy = "closed"   // it answers 503
	open     policy = "open"     // it lets all pass
	fallback policy = "fallback" // it limits by its own memory
)

var policies = []policy{closed, open, fallback}

const (
	replicas = 2                        // of a program, which share the store
	deadline = resilient.DefaultTimeout // of a decision
	cooldown = 500 * time.Millisecond   // of the breaker
)

// The limits: one for each algorithm, that is always used up, one that never is, and
// one for looking whether all limiting is right again. Half of a Count is whole, so
// that it can be divided by the replicas.
var (
	hot = []*algorithms.Policy{
		limit("gcra", algorithms.GCRA{}, algorithms.PerSecond(20)),
		limit("leaky", algorithms.LeakyBucket{}, algorithms.PerSecond(20)),
		limit("token", algorithms.TokenBucket{}, algorithms.PerSecond(20).WithBurst(10)),
		limit("fixed", algorithms.FixedWindow{}, algorithms.PerSecond(20)),
		limit("counter", algorithms.SlidingCounter{}, algorithms.PerSecond(20)),
		limit("log", algorithms.SlidingLog{}, algorithms.PerSecond(20)),
	}
	quiet = limit("quiet", algorithms.GCRA{}, algorithms.PerHour(1_000_000))
	probe = limit("probe", algorithms.GCRA{}, algorithms.PerMinute(probed))
)

// probed is odd, so that what is shared can be told from what is divided.
const probed = 5

func limit(name string, a algorithms.Algorithm, l algorithms.Limit) *algorithms.Policy {
	p, err := algorithms.NewPolicy(name, a, l)
	if err != nil {
		panic(err)
	}
	return p
}

// stack is the replicas of a program under a policy.
type stack struct {
	policy  policy
	clients []redis.UniversalClient
	serves  []http.Handler
}

func newStack(b *bed, p policy) *stack {
	s := &stack{policy: p}
	for range replicas {
		client := b.client()
		s.clients = append(s.clients, client)
		r, err := redisstore.New(client, redisstore.Config{Prefix: "weir-" + string(p) + ":"})
		if err != nil {
			b.Fatal(err)
		}
		m, err := middleware.New(middleware.Config{
			Store: chain(r, p),
			Rules: []middleware.Rule{{
				PolicyOf: func(r *http.Request) *algorithms.Policy { return asked(r).policy },
				Policies: append([]*algorithms.Policy{quiet, probe}, hot...),
				Key:      func(r *http.Request) (string, error) { return asked(r).key, nil },
			}},
			Denied: func(w http.ResponseWriter, r *http.Request, d middleware.Decision) {
				one := asked(r)
				one.denied = d.Refused == 0 && d.Results[0].Limited && d.Results[0].Limit > 0 && d.Results[0].Remaining < d.Charges[0].Cost
				middleware.DefaultDenied(w, r, d)
			},
			Logger: silent,
		})
		if err != nil {
			b.Fatal(err)
		}
		s.serves = append(s.serves, m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d, _ := middleware.FromContext(r.Context())
			one := asked(r)
			one.served++
			one.decided = d.Results[0].Limit > 0
			w.WriteHeader(http.StatusOK)
		})))
	}
	return s
}

// chain is the store as a program has it.
func chain(s store.Store, p policy) store.Store {
	c := breaker.Config{Cooldown: cooldown}
	if p == closed {
		return store.DenyCache(breaker.New(store.Timeout(s, deadline), c), resilient.DefaultDenyFor, resilient.DefaultDenyKeys)
	}
	return resilient.New(s, resilient.Config{Replicas: replicas, Breaker: c, FailOpen: p == open})
}

// request is one, and what became of it.
type request struct {
	policy *algorithms.Policy
	key    string

	status  int
	served  int  // how often the handler ran
	decided bool // the store had decided, when it did
	denied  bool // the answer was the store's denial
}

type requestKey struct{}

func asked(r *http.Request) *request { return r.Context().Value(requestKey{}).(*request) }

// ask sends a request to a replica.
func (s *stack) ask(ctx context.Context, replica int, p *algorithms.Policy, key string) *request {
	one := &request{policy: p, key: key}
	r := httptest.NewRequestWithContext(context.WithValue(ctx, requestKey{}, one), http.MethodGet, "/", nil)
	w := httptest.NewRecorder()
	s.serves[replica].ServeHTTP(w, r)
	one.status = w.Code
	return one
}

// right tells whether new keys have their limit, which all replicas share. On a
// cluster some keys are on each node, most likely.
func (s *stack) right(ctx context.Context, name string, keys int) bool {
	for k := range keys {
		passed, denied := 0, 0
		for i := range 2 * probed {
			switch one := s.ask(ctx, i%replicas, probe, fmt.Sprint(name, "-", k)); {
			case one.served > 0:
				passed++
			case one.denied:
				denied++
			}
		}
		if passed != probed || denied != probed {
			return false
		}
	}
	return true
}

func (s *stack) close(b *bed) {
	for _, c := range s.clients {
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
