package benchmarks

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// barest is GCRA with as little as one can write by hand: the server's clock, no
// cost, no burst but in time, and one number in reply.
const barest = `local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
if tat < now then tat = now end
local new = tat + ARGV[1]
if new - now > tonumber(ARGV[2]) then return 1 end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
return 0`

const (
	serverRounds = 15
	serverCalls  = 20_000
	serverKeys   = 1000
	logKeys      = 100
)

// contender is a command that a server is to be timed with, for each key.
type contender struct {
	name string
	args func(key string) []any
}

// BenchmarkServerTime prints what a decision costs the server: microseconds a
// call as INFO commandstats has them, the median of rounds in which the
// contenders take turns, and the ratio to the barest script.
func BenchmarkServerTime(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
	defer client.Close()

	contenders := []contender{
		{"barest GCRA", scripted(b, client, barest, 100_000, 10_000_000)},
		{"return 1", scripted(b, client, "return 1")},
		weirCharge(b, client, "weir, allowed", algorithms.PerMinute(600).WithBurst(100), 1, store.Enforce),
		weirCharge(b, client, "weir, allowed, 7 per 3 s", algorithms.Limit{Count: 7, Period: 3 * time.Second, Burst: 100}, 1, store.Enforce),
		weirCharge(b, client, "weir, cost 2", algorithms.PerMinute(600).WithBurst(100), 2, store.Enforce),
		weirCharge(b, client, "weir, refused", algorithms.PerDay(1), 1, store.Enforce),
		weirCharge(b, client, "weir, look", algorithms.PerDay(1), 0, store.Enforce),
		weirGroup(b, client, "weir, group of 4", 4),
		redisRate(b, client),
	}
	for i, line := range medians(b, client, contenders) {
		if i == 0 {
			b.Log("server µs a call: median, ratio to the barest (least … most)")
		}
		b.Log(line)
	}
}

func medians(b *testing.B, client *redis.Client, contenders []contender) (lines []string) {
	times := make([][]float64, len(contenders))
	for round := range serverRounds {
		for i := range contenders {
			c := contenders[(i+round)%len(contenders)]
			times[(i+round)%len(contenders)] = append(times[(i+round)%len(contenders)], serverTime(b, client, c))
		}
	}
	base := median(times[0])
	for i, c := range contenders {
		ts := times[i]
		lines = append(lines, fmt.Sprintf("%-26s %6.2f  ×%.2f  (%.2f … %.2f)", c.name, median(ts), median(ts)/base, slices.Min(ts), slices.Max(ts)))
	}
	return lines
}

var usecPerCall = regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=(\d+)`)

// serverTime is the server's microseconds a call of c, over many pipelined calls.
func serverTime(b *testing.B, client *redis.Client, c contender) float64 {
	ctx := context.Background()
	keys := make([]string, serverKeys)
	for i := range keys {
		keys[i] = c.name + strconv.Itoa(i)
	}
	if err := client.ConfigResetStat(ctx).Err(); err != nil {
		b.Fatal(err)
	}
	for done := 0; done < serverCalls; done += 100 {
		pipe := client.Pipeline()
		for i := range 100 {
			pipe.Do(ctx, c.args(keys[(done+i)%serverKeys])...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			b.Fatal(err)
		}
	}
	m := usecPerCall.FindStringSubmatch(client.Info(ctx, "commandstats").Val())
	if m == nil {
		b.Fatal("no evalsha in commandstats")
	}
	calls, _ := strconv.ParseFloat(m[1], 64)
	usec, _ := strconv.ParseFloat(m[2], 64)
	return usec / calls
}

func median(ts []float64) float64 {
	ts = slices.Sorted(slices.Values(ts))
	return ts[len(ts)/2]
}

func scripted(b *testing.B, client *redis.Client, body string, argv ...any) func(string) []any {
	sha, err := client.ScriptLoad(context.Background(), body).Result()
	if err != nil {
		b.Fatal(err)
	}
	return func(key string) []any { return append([]any{"evalsha", sha, 1, key}, argv...) }
}

// tap keeps the last command that a store sends, and has it sent.
type tap struct {
	*redis.Client
	last []any
}

func (t *tap) Process(ctx context.Context, cmd redis.Cmder) error {
	if cmd.Name() == "evalsha" {
		t.last = slices.Clone(cmd.Args())
	}
	return t.Client.Process(ctx, cmd)
}

// weirCharge is what redisstore sends for one charge. It has the script loaded.
func weirCharge(b *testing.B, client *redis.Client, name string, l algorithms.Limit, cost int64, mode store.Mode) contender {
	return weirTake(b, client, name, []store.Charge{{Policy: policy(b, "p", l), Key: "KEY", Cost: cost, Mode: mode}})
}

func weirGroup(b *testing.B, client *redis.Client, name string, n int) contender {
	var charges []store.Charge
	for i := range n {
		charges = append(charges, store.Charge{Policy: policy(b, "p"+strconv.Itoa(i), algorithms.PerMinute(600).WithBurst(100)), Key: "KEY", Cost: 1})
	}
	return weirTake(b, client, name, charges)
}

func weirTake(b *testing.B, client *redis.Client, name string, charges []store.Charge) contender {
	t := &tap{Client: client}
	s, err := redisstore.New(t, redisstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Take(context.Background(), charges, make([]algorithms.Result, len(charges))); err != nil {
		b.Fatal(err)
	}
	args := t.last
	return contender{name, func(key string) []any {
		own := slices.Clone(args)
		for i, a := range own {
			if text, ok := a.(string); ok && i > 2 && i < 3+len(charges) {
				own[i] = strings.Replace(text, "KEY", key, 1)
			}
		}
		return own
	}}
}

// redisRate is what redis_rate sends.
func redisRate(b *testing.B, client *redis.Client) contender {
	own := redis.NewClient(client.Options())
	defer own.Close()
	var last []any
	own.AddHook(hook{func(cmd redis.Cmder) {
		if cmd.Name() == "evalsha" {
			last = slices.Clone(cmd.Args())
		}
	}})
	if _, err := redis_rate.NewLimiter(own).Allow(context.Background(), "KEY", redis_rate.Limit{Rate: 600, Period: time.Minute, Burst: 100}); err != nil {
		b.Fatal(err)
	}
	args := last
	return contender{"redis_rate, allowed", func(key string) []any {
		own := slices.Clone(args)
		own[3] = strings.Replace(own[3].(string), "KEY", key, 1)
		return own
	}}
}

type hook struct{ see func(redis.Cmder) }

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.see(cmd)
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func policy(tb testing.TB, name string, l algorithms.Limit) *algorithms.Policy {
	tb.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, l)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
