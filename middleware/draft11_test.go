package middleware_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

// The fields of all scenes are what the draft says, and no refusal is told to come
// back before there is more.
func TestDraft11Scenes(t *testing.T) {
	for _, s := range scenes(t) {
		synctest.Test(t, func(t *testing.T) {
			for _, secret := range [][]byte{nil, bytes.Repeat([]byte("s"), 16)} {
				w, _ := s.play(t, middleware.Headers{Dialect: middleware.Draft11, PartitionSecret: secret})
				retry, err := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64)
				for _, one := range quotas(t, w.Header()) {
					if (one.pk != nil) != (secret != nil) {
						t.Errorf("%s: pk %v", s.name, one.pk)
					}
					if one.r == 0 && err == nil && one.t > retry {
						t.Errorf("%s: %s has more after %d s, and Retry-After is %d", s.name, one.name, one.t, retry)
					}
				}
			}
		})
	}
}

func TestDraft11Policies(t *testing.T) {
	most := int64(1) << 53
	long := strings.Repeat("Az9-_.", 11)[:64]
	for _, c := range []struct {
		name   string
		a      algorithms.Algorithm
		limit  algorithms.Limit
		cost   int64
		q, w   int64
		r, t   int64 // −1: no t
		status int
	}{
		{long, algorithms.GCRA{}, per(1, second, 0), 1, 1, 1, 0, 1, 200},
		{".", algorithms.GCRA{}, per(10, time.Minute, 5), 1, 5, 30, 4, 6, 200},
		{"-", algorithms.GCRA{}, per(7, 3*second, 10), 1, 10, 5, 9, 1, 200}, // 30/7 s
		{"_", algorithms.GCRA{}, per(1_000_000, second, 1), 1, 1, 1, 0, 1, 200},
		{"0", algorithms.FixedWindow{}, per(5, 1500*time.Millisecond, 0), 1, 5, 2, 4, 2, 200},
		{"w", algorithms.FixedWindow{}, per(1, time.Microsecond, 0), 1, 1, 1, 0, 1, 200},
		{"s", algorithms.TokenBucket{Stepped: true}, per(2, 10*second, 9), 4, 9, 45, 5, 20, 200},
		{"large", algorithms.GCRA{}, per(most, second, most), 1, largest, 1, largest, 1, 200},
		{"year", algorithms.GCRA{}, per(1, 365*24*time.Hour, 100_000), 7, 100_000, 100_000 * 365 * 24 * 3600, 99_993, 365 * 24 * 3600, 200},
		{"ages", algorithms.GCRA{}, per(1, 365*24*time.Hour, 100_000), 290, 100_000, 100_000 * 365 * 24 * 3600, 99_710, (1<<53)/1_000_000 + 1, 200}, // not known
		{"never", algorithms.GCRA{}, per(1, 365*24*time.Hour, 100_000), 100_001, 100_000, 100_000 * 365 * 24 * 3600, 100_000, -1, 429},
	} {
		clock := storetest.NewClock()
		h := newMiddleware(t, middleware.Config{
			Store:   memstore.New(memstore.Config{Clock: clock.Now}),
			Rules:   []middleware.Rule{with(t, c.name, c.a, c.limit, byCost)},
			Headers: middleware.Headers{Dialect: middleware.Draft11},
		}).Handler(ok)
		w := serve(h, ofSize(c.cost))
		got := quotas(t, w.Header())
		want := quota{name: c.name, q: c.q, w: c.w, r: c.r, t: c.t, unit: "requests"}
		if w.Code != c.status || len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want) {
			t.Errorf("%d %+v, want %d %+v", w.Code, got, c.status, want)
		}
	}
}

// oneKey is a store of one key, that can be asked about any time.
type oneKey struct {
	store.Store
	state algorithms.State
	now   int64 // µs
}

func (s *oneKey) Take(_ context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.state, results[0] = charges[0].Policy.Decide(nil, s.state, s.now, charges[0].Cost, 0)
	return nil
}

// At t there is more, and in buckets that drain without steps not a second before.
func TestDraft11MoreAfter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	limits := []algorithms.Limit{
		per(10, time.Minute, 0), per(7, 3*second, 0), per(3, second, 0), per(13, time.Hour, 0), per(1, 90*second, 0),
		per(999, 24*time.Hour, 0), per(1_000_003, 24*time.Hour, 0), per(9973, 7*24*time.Hour, 0),
	}
	for _, a := range []algorithms.Algorithm{
		algorithms.GCRA{}, algorithms.LeakyBucket{}, algorithms.TokenBucket{}, algorithms.LeakyBucket{Stepped: true},
		algorithms.FixedWindow{}, algorithms.FixedWindow{Aligned: true}, algorithms.SlidingCounter{}, algorithms.SlidingLog{},
	} {
		for _, l := range limits {
			if _, isLog := a.(algorithms.SlidingLog); isLog && l.Count > algorithms.MaxLog {
				continue
			}
			p, s := policyOf(t, "p", a, l), &oneKey{Store: memstore.New(memstore.Config{})}
			h := newMiddleware(t, middleware.Config{
				Store: s, Headers: middleware.Headers{Dialect: middleware.Draft11},
				Rules: []middleware.Rule{{Policy: p, Key: keyfunc.Const("k"), Cost: func(r *http.Request) int64 { return r.ContentLength }}},
			}).Handler(ok)
			_, steady := p.Turn(0, algorithms.Result{})
			remaining := func(after time.Duration) int64 {
				_, look := p.Decide(nil, s.state, s.now+after.Microseconds(), 0, 0)
				return look.Remaining
			}
			said, refused := 0, 0
			for range 300 {
				s.now += random.Int64N(l.Period.Microseconds() / min(l.Count, 5))
				w := serve(h, ofSize(random.Int64N(l.Count/4+2)))
				one := quotas(t, w.Header())[0]
				if one.t < 0 {
					continue
				}
				said++
				after := time.Duration(one.t) * second
				if more := remaining(after - second); steady && one.t > 1 && more > one.r {
					t.Errorf("%s %v: %d after %v already, more than %d", a.Name(), l, more, after-second, one.r)
				}
				if more := remaining(after); more <= one.r {
					t.Errorf("%s %v: %d after %v, not more than %d", a.Name(), l, more, after, one.r)
				}
				if retry, err := strconv.ParseInt(w.Header().Get("Retry-After"), 10, 64); err == nil {
					if refused++; one.t > retry {
						t.Errorf("%s %v: more after %v, and Retry-After is %d", a.Name(), l, after, retry)
					}
				}
			}
			if said < 100 || refused < 10 {
				t.Errorf("%s %v: t was said %d times, with %d refusals", a.Name(), l, said, refused)
			}
		}
	}
}

// ownNumbers is an algorithm that has its numbers elsewhere than in the Limit.
type ownNumbers struct{ algorithms.GCRA }

func (o ownNumbers) Params(algorithms.Limit) ([]int64, error) {
	return o.GCRA.Params(algorithms.PerMinute(5))
}

func TestDraft11OfOwnNumbers(t *testing.T) {
	for _, l := range []algorithms.Limit{{}, {Count: 5}, {Period: time.Minute}, {Count: -1, Period: -1}, {Count: 1, Period: math.MinInt64}} {
		h := newMiddleware(t, middleware.Config{
			Store: memstore.New(memstore.Config{Clock: storetest.NewClock().Now}), Headers: middleware.Headers{Dialect: middleware.Draft11},
			Rules: []middleware.Rule{with(t, "own", ownNumbers{}, l)},
		}).Handler(ok)
		serve(h)
		wantHeaders(t, serve(h), map[string]string{"RateLimit-Policy": `"own";q=5`, "RateLimit": `"own";r=3;t=24`})
	}
}

// A store that rounds times can say that something is taken and nothing has to be
// waited for.
func TestDraft11OfRoundedTimes(t *testing.T) {
	h := newMiddleware(t, middleware.Config{
		Store: answering{{Limit: 5, Remaining: 4}, {Limit: 5, Remaining: 3}}, Headers: middleware.Headers{Dialect: middleware.Draft11},
		Rules: []middleware.Rule{with(t, "a", algorithms.FixedWindow{}, per(5, second, 0)), with(t, "b", algorithms.GCRA{}, per(5, second, 0))},
	}).Handler(ok)
	wantHeaders(t, serve(h), map[string]string{"RateLimit": `"a";r=4;t=1, "b";r=3;t=1`})
}

// The parameter pk is 12 bytes of a keyed hash: by policy, key and secret.
func TestPartition(t *testing.T) {
	secret := []byte("0123456789abcdef")
	pks := func(secret []byte, key string, names ...string) (all [][]byte) {
		c := middleware.Config{Store: memstore.New(memstore.Config{}), Headers: middleware.Headers{Dialect: middleware.Draft11, PartitionSecret: slices.Clone(secret)}}
		for _, name := range names {
			c.Rules = append(c.Rules, middleware.Rule{Policy: policy(t, name, per(math.MaxInt32, time.Minute, 0)), Key: client})
		}
		h := newMiddleware(t, c).Handler(ok)
		clear(c.Headers.PartitionSecret) // it was copied
		for range 2 {                    // from the pool, too
			all = nil
			w := serve(h, by(key))
			for _, one := range quotas(t, w.Header()) {
				all = append(all, one.pk)
			}
		}
		return all
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("a\x00alice"))
	if got := pks(secret, "alice", "a")[0]; !bytes.Equal(got, mac.Sum(nil)[:12]) {
		t.Errorf("pk %x", got)
	}
	seen := map[string]bool{}
	for _, all := range [][][]byte{pks(secret, "alice", "a", "b", "a.b"), pks(secret, "bob", "a"), pks([]byte("0123456789abcdeF"), "alice", "a")} {
		for _, pk := range all {
			if seen[base64.StdEncoding.EncodeToString(pk)] = true; len(pk) != 12 {
				t.Errorf("pk %x", pk)
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d different ones of 5", len(seen))
	}
}
