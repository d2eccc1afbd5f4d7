package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

func TestNewMistakes(t *testing.T) {
	var none *redis.Client
	good := redis.NewClient(&redis.Options{ContextTimeoutEnabled: true})
	defer good.Close()
	deaf, deafRing := redis.NewClient(&redis.Options{}), redis.NewRing(&redis.RingOptions{})
	deafCluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer deaf.Close()
	defer deafRing.Close()
	defer deafCluster.Close()
	for name, c := range map[string]struct {
		client redisstore.Client
		config redisstore.Config
		fields []string
	}{
		"nil":          {nil, redisstore.Config{}, []string{"client"}},
		"nil pointer":  {none, redisstore.Config{}, []string{"client"}},
		"deaf":         {deaf, redisstore.Config{}, []string{"client"}},
		"deaf ring":    {deafRing, redisstore.Config{}, []string{"client"}},
		"deaf cluster": {deafCluster, redisstore.Config{}, []string{"client"}},
		"braces":       {good, redisstore.Config{Prefix: "a{b", Tag: "c}"}, []string{"redisstore.Config.Prefix", "redisstore.Config.Tag"}},
		"all":          {nil, redisstore.Config{Prefix: "}", Tag: "{"}, []string{"client", "redisstore.Config.Prefix", "redisstore.Config.Tag"}},
	} {
		s, err := redisstore.New(c.client, c.config)
		if s != nil || err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		var fields []string
		for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
			var mistake *algorithms.FieldError
			if errors.As(e, &mistake) && mistake.Reason != "" {
				fields = append(fields, mistake.Field)
			}
		}
		slices.Sort(fields)
		slices.Sort(c.fields)
		if !slices.Equal(fields, c.fields) {
			t.Errorf("%s: %v, want %v", name, err, c.fields)
		}
	}
	if _, err := redisstore.New(good, redisstore.Config{}); err != nil {
		t.Errorf("a good client: %v", err)
	}
}

// window is an algorithm from outside: a fixed window that opens at a key's
// first charge. It is here to show what an algorithm needs, not to be used.
type window struct{ lua string }

func (window) Name() string { return "test-window" }

func (window) Params(l algorithms.Limit) ([]int64, error) {
	if l.Burst != 0 || l.Count < 1 || l.Count > 1<<52 || l.Period < time.Microsecond || l.Period%time.Microsecond != 0 || l.Period > 50*365*24*time.Hour {
		return nil, &algorithms.FieldError{Field: "Limit", Value: l.String(), Reason: "is not for this window"}
	}
	return []int64{l.Count, l.Period.Microseconds()}, nil
}

func (window) Decide(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	count, period := p[0], p[1]
	opened, used := now, int64(0)
	if len(s) == 2 && now < s[0]+period && s[0]-now <= period {
		opened, used = s[0], min(s[1], count)
	}
	left := opened + period - now
	r := algorithms.Result{Limit: count}
	next := used
	switch {
	case cost > count:
		r.Limited, r.RetryAfter = true, algorithms.Never
	case cost > 0:
		if r.Limited = cost > count-used; !r.Limited {
			next += cost
		}
		if cost > count-next {
			r.RetryAfter = time.Duration(left) * time.Microsecond
		}
	case cost == 0:
		if r.Limited = used == count; r.Limited {
			r.RetryAfter = time.Duration(left) * time.Microsecond
		}
	case max(age, 0) <= now-opened:
		next = max(0, used+max(cost, -count))
	}
	r.Remaining = count - next
	if next > 0 {
		r.ResetAfter = time.Duration(left) * time.Microsecond
	}
	switch {
	case r.Limited || cost == 0:
		return append(dst, s...), r
	case next == 0:
		return dst, r
	}
	return append(dst, opened, next), r
}

func (w window) Lua() string {
	if w.lua != "" {
		return w.lua
	}
	return `
local count, period = p1, p2
local opened, used = now, 0
if s1 and now < s1 + period and s1 - now <= period then opened, used = s1, math.min(s2, count) end
local left, after = opened + period - now, used
limited, limit, retry, reset = false, count, 0, 0
if cost > count then
  limited, retry = true, -1
elseif cost > 0 then
  limited = cost > count - used
  if not limited then after = used + cost end
  if cost > count - after then retry = left end
elseif cost == 0 then
  limited = used == count
  if limited then retry = left end
elseif math.max(age, 0) <= now - opened then
  after = math.max(0, used + math.max(cost, -count))
end
remaining = count - after
if after > 0 then reset, n1, n2 = left, opened, after end`
}

// Whoever writes an algorithm holds it to the laws, its script to be the twin,
// and stores to decide by it, as this project does with its own.
func TestAlgorithmFromOutside(t *testing.T) {
	storetest.Laws(t, storetest.Spec{
		Algorithm: window{},
		Bound: func(l algorithms.Limit, span time.Duration) int64 {
			return l.Count * (int64((span+l.Period-1)/l.Period) + 1)
		},
		Rate: func(l algorithms.Limit) (int64, time.Duration) { return l.Count, l.Period },
		Span: func(l algorithms.Limit) time.Duration { return l.Period },
	})
	o := storetest.Options{Algorithms: []algorithms.Algorithm{window{}}, Steps: 1000}
	t.Run("memory", func(t *testing.T) {
		storetest.Run(t, func(_ *testing.T, c *storetest.Clock) store.Store { return memstore.New(memstore.Config{Clock: c.Now}) }, o)
	})
	t.Run("miniredis", func(t *testing.T) {
		storetest.Twin(t, window{}, eval(t, redistest.Mini(t, storetest.NewClock()).Addr()), storetest.TwinOptions{Steps: 20_000})
		storetest.Run(t, openMini, o)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		storetest.Twin(t, window{}, eval(t, redistest.Start(t).Addr), storetest.TwinOptions{Steps: 20_000})
		storetest.Run(t, openReal(t), o)
	})
}

// Groups of several algorithms are decided in Redis as in memory.
func TestGroupsOfSeveralAlgorithms(t *testing.T) {
	for name, open := range map[string]casetest.Open{"miniredis": openMini, "redis": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if open == nil {
				open = openReal(t)
			}
			groupsOfSeveralAlgorithms(t, open)
		})
	}
}

func groupsOfSeveralAlgorithms(t *testing.T, open casetest.Open) {
	clock := storetest.NewClock()
	inRedis, inMemory := open(t, clock), memstore.New(memstore.Config{Clock: clock.Now})
	var policies []*algorithms.Policy
	for i, a := range append(casetest.Algorithms(), window{}, algorithms.SlidingLog{}) {
		p, err := algorithms.NewPolicy("p"+strconv.Itoa(i), a, algorithms.Limit{Count: int64(2 + i), Period: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for step := range 1500 {
		clock.Advance(time.Duration(rnd.Int64N(1_500_000)) * time.Microsecond)
		var charges []store.Charge
		for _, i := range rnd.Perm(len(policies))[:2+rnd.IntN(6)] {
			c := store.Charge{Policy: policies[i], Key: "k", Cost: rnd.Int64N(4), Mode: store.Mode(rnd.IntN(3))}
			if rnd.IntN(12) == 0 {
				c.Cost, c.Mode = 0, store.Forget
			}
			charges = append(charges, c)
		}
		got, want := make([]algorithms.Result, len(charges)), make([]algorithms.Result, len(charges))
		if err := inRedis.Take(context.Background(), charges, got); err != nil {
			t.Fatal(err)
		}
		if err := inMemory.Take(context.Background(), charges, want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d, %+v:\nredis  %+v\nmemory %+v", seed, step, charges, got, want)
		}
	}
}

// unscripted is an algorithm for memory only.
type unscripted struct{ algorithms.Algorithm }

func TestValidate(t *testing.T) {
	s := openMini(t, storetest.NewClock())
	policy := func(a algorithms.Algorithm) *algorithms.Policy {
		p, err := algorithms.NewPolicy("p", a, algorithms.PerMinute(1))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := s.Validate(policy(algorithms.GCRA{}), policy(window{})); err != nil {
		t.Errorf("two scripted algorithms: %v", err)
	}
	for name, c := range map[string]struct {
		p         *algorithms.Policy
		says      string
		supported bool
	}{
		"no policy":      {nil, "is missing", true},
		"no script":      {policy(unscripted{algorithms.GCRA{}}), "no script", false},
		"another script": {policy(window{"limited = false"}), "two algorithms are named test-window", true},
	} {
		err := s.Validate(c.p)
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, errors.ErrUnsupported) == c.supported {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := store.Take(context.Background(), s, c.p, "k", 1); err == nil {
			t.Errorf("%s: Take makes a charge", name)
		}
	}
	other := openMini(t, storetest.NewClock())
	if err := other.Validate(policy(window{"limit = p3"})); err == nil || !strings.Contains(err.Error(), "uses 3 params, and it has 2") {
		t.Errorf("a script with a param too many: %v", err)
	}
}

// impostor has the name of an algorithm that is kept in another form.
type impostor struct{ window }

func (impostor) Name() string { return algorithms.SlidingLog{}.Name() }

func TestValidateLogs(t *testing.T) {
	s := openMini(t, storetest.NewClock())
	for _, c := range []struct {
		a  algorithms.Algorithm
		ok bool
	}{{algorithms.SlidingLog{}, true}, {&algorithms.SlidingLog{}, true}, {impostor{}, false}} {
		p, err := algorithms.NewPolicy("p", c.a, algorithms.PerMinute(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(p); (err == nil) != c.ok {
			t.Errorf("%T: %v", c.a, err)
		}
		if r, err := store.Take(t.Context(), s, p, "k", 0); (err == nil) != c.ok {
			t.Errorf("%T: %+v, %v", c.a, r, err)
		}
	}
}

// deaf is a client of a server that does not know a command, and says so with the
// key in it.
type deaf struct{}

func (deaf) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.SetErr(unknownCommand(fmt.Sprintf("ERR unknown command '%s', with args beginning with: '%v' '%v' '%v' ", cmd.Name(), cmd.Args()[1], cmd.Args()[2], cmd.Args()[3])))
	return cmd.Err()
}

type unknownCommand string

func (e unknownCommand) Error() string { return string(e) }
func (unknownCommand) RedisError()     {}

func TestNoKeyInErrors(t *testing.T) {
	s, err := redisstore.New(deaf{}, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Take(t.Context(), s, gcra(t, "p", algorithms.PerMinute(1)), "+12025550142", 1)
	if err == nil || strings.Contains(err.Error(), "2025550142") || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("%v", err)
	}
}

// A script that decides otherwise than its algorithm is found out.
func TestScriptThatIsNoTwin(t *testing.T) {
	s := openMini(t, storetest.NewClock())
	lax := strings.Replace(window{}.Lua(), "limited = cost > count - used", "limited = false", 1)
	p, err := algorithms.NewPolicy("p", window{lax}, algorithms.PerMinute(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Take(context.Background(), s, p, "k", 1); err != nil {
		t.Fatal(err)
	}
	if r, err := store.Take(context.Background(), s, p, "k", 1); err == nil || !strings.Contains(err.Error(), "not its twin") {
		t.Errorf("%+v, %v", r, err)
	}
}
