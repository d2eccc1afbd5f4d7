package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
	"github.com/weirgo/weir/store/storetest"
)

// wantSound wants results that an algorithm can give.
func wantSound(t *testing.T, what string, results []algorithms.Result) {
	t.Helper()
	const longest = 1 << 53 * time.Microsecond
	for _, r := range results {
		if r.Limit < 1 || r.Remaining < 0 || r.Remaining > r.Limit || r.RetryAfter < algorithms.Never || r.RetryAfter > longest || r.ResetAfter < 0 || r.ResetAfter > longest {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// saying is a server that answers every command the same: a text to one charge,
// numbers to a group.
type saying struct {
	text    string
	numbers []int64
	err     error
}

type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func (s *saying) Process(_ context.Context, cmd redis.Cmder) error {
	if s.err != nil {
		cmd.SetErr(s.err)
		return s.err
	}
	switch cmd := cmd.(type) {
	case interface{ SetVal(string) }:
		cmd.SetVal(s.text)
	case interface{ SetVal([]int64) }:
		cmd.SetVal(s.numbers)
	default:
		panic(fmt.Sprintf("%T is no command of this store", cmd))
	}
	return nil
}

// FuzzReply has a server answer anything. What is no answer is an error, and what
// seems to be one is a Result.
func FuzzReply(f *testing.F) {
	const now = "1764000000000000"
	for _, text := range []string{
		"", "0 " + now, "1 " + now + " 60000000 " + now + " 60000000", "1 " + now, "2 " + now, "0 0 0 0 0", "0  1", " ", "0 x", "0 " + now + " 5 5 5 5",
		"0 -9223372036854775808 9223372036854775807 -9223372036854775808 1", "0 9223372036854775807 1 1 1", "0 99999999999999999999", "0 1 -1 -1 -1",
		"0 " + now + " 9007199254740992 -9007199254740992 1", "1 " + now + " " + now + " 1 9007199254740992", "1 0 1 1 9007199254740992", "0 1e3", "+0 +1", "0x0 1", "OK", "\x00", "0 1 2 3 4 5 6 7 8 9 10 11",
	} {
		for i := range 9 {
			f.Add(text, int64(0), int64(5), int64(4), int64(0), int64(1), uint8(i), uint8(9*i), "")
		}
	}
	for i, n := range [][5]int64{{1, 5, 0, 1, 1}, {2, 5, 4, 0, 1}, {-1, 5, 4, 0, 1}, {0, 0, 0, 0, 0}, {0, -5, -5, 0, 0}, {0, 5, 6, 0, 0}, {1, 5, 0, -1, 0}, {1, 5, 0, -2, 0}, {1, 5, 0, 1 << 53, 1 << 53}, {1, 5, 0, 1<<53 + 1, 1<<53 + 1}, {1, 5, 0, 1 << 62, -1 << 63}} {
		f.Add("", n[0], n[1], n[2], n[3], n[4], uint8(i), uint8(10+i), "")
	}
	f.Add("", int64(0), int64(0), int64(0), int64(0), int64(0), uint8(0), uint8(1), "ERR unknown command `evalsha`, with args beginning with: `k`")
	f.Add("", int64(0), int64(0), int64(0), int64(0), int64(0), uint8(0), uint8(1), "NOSCRIPT No matching script")
	as := casetest.Algorithms()
	f.Fuzz(func(t *testing.T, text string, limited, limit, remaining, retry, reset int64, algorithm, shape uint8, failure string) {
		p, err := algorithms.NewPolicy("p", as[int(algorithm)%len(as)], algorithms.PerMinute(5))
		if err != nil {
			t.Fatal(err)
		}
		server := &saying{text: text, numbers: []int64{limited, limit, remaining, retry, reset}}
		for range shape % 4 {
			server.numbers = append(server.numbers, 0, 5, 4, 0, 1)
		}
		if failure != "" {
			server.err = replyError(failure)
		}
		s, err := redisstore.New(server, redisstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		cost := []int64{1, 0, -1, 5, 6}[shape%5]
		group := []store.Charge{{Policy: p, Key: "one", Cost: cost}, {Policy: p, Key: "two", Cost: 1}, {Policy: p, Key: "three", Mode: store.Forget}}
		for n := 1; n <= len(group); n++ {
			results := make([]algorithms.Result, n)
			err := s.Take(t.Context(), group[:n], results)
			if err == nil {
				wantSound(t, fmt.Sprintf("%+v to %d charges under %s", server, n, casetest.Form(p.Algorithm())), results)
			}
			if err == nil && (failure != "" || n > 1 && len(server.numbers) != 5*n) {
				t.Errorf("%+v is taken for an answer to %d charges", server, n)
			}
		}
	})
}

// garbage is what looks more or less like a state.
var garbage = []string{
	"", " ", "0", "1", "-1", "0 0", "1 2", "1 2 3", "-1 -2 -3", "0 0 0", "1 2 3 4", "abc", "1.5 2 3", "1e3 2 3", "nan nan nan", "inf -inf inf", "1 2 3\n", "\x00\xff", "--1 2 3", "- - -",
	"9007199254740992 9007199254740992 9007199254740992", "-9007199254740992 -9007199254740992 -9007199254740992",
	"9223372036854775807 9223372036854775807 9223372036854775807", "-9223372036854775808 -9223372036854775808 -9223372036854775808",
	"9223372036854775807 -9223372036854775808 1", "1 -9223372036854775808 9223372036854775807", "1 9223372036854775807 1", "1 1728000000000000 0", "0 1728000000000000 1",
	"1728000000000000 9223372036854775807", "1728000000000000 -9223372036854775808", "-9223372036854775808 5", "9223372036854775807 5", "1728000000000000 5",
	"1728000000000000 9007199254740992 9007199254740992", "1728000000000000 1 9007199254740992", "1728000060000000 1 9007199254740992", "1728000000000000 -5 -5", "1728000000000000 5 9999999999999999999",
	"60000000 1728000000000000 7", "9007199254740992 1728000000000000 9007199254740991", "9007199254740991 1728000000000000 3",
	strings.Repeat("9", 400) + " " + strings.Repeat("9", 400) + " " + strings.Repeat("9", 400), "1 -" + strings.Repeat("9", 400) + " 1", strings.Repeat("9", 400) + " 1728000000000000 1", "-" + strings.Repeat("9", 400) + " 5", "1728000000000000 " + strings.Repeat("9", 400),
	strings.Repeat("1 ", 1000), strings.Repeat("0", 1<<16),
}

// oneOfEach is a charge of each kind.
var oneOfEach = []store.Charge{
	{Cost: 1}, {}, {Cost: -1}, {Cost: 5}, {Cost: 6}, {Cost: -5, Age: time.Hour}, {Cost: 1, Mode: store.Strike}, {Cost: 1, Mode: store.Shadow}, {Mode: store.Forget},
}

// charged charges a key that put has written something to, alone and in a group,
// and wants an error or results that an algorithm can give. Nothing else suffers.
func charged(t *testing.T, s store.Store, a algorithms.Algorithm, what string, put func(name string), charges ...store.Charge) {
	t.Helper()
	p, err := algorithms.NewPolicy("p", a, algorithms.PerMinute(5))
	if err != nil {
		t.Fatal(err)
	}
	what += " under " + casetest.Form(a)
	for _, c := range charges {
		c.Policy, c.Key = p, "k"
		for _, group := range [][]store.Charge{{c}, {c, {Policy: p, Key: "other", Cost: 1}}} {
			put("weir:{k}:" + p.ID())
			for range 2 { // what the first has written, the second finds
				results := make([]algorithms.Result, len(group))
				if err := s.Take(context.Background(), group, results); err == nil {
					wantSound(t, what, results)
				} else if strings.Contains(err.Error(), "{k}") || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
	if r := mustTake(t, s, p, "sound", 1); r.Limited || r.Remaining != 4 {
		t.Errorf("%s: another key is %+v", what, r)
	}
}

// What somebody has written to a key is an error or is charged as what it looks
// like. It does not end or hold up the server. Each text meets a third of the kinds
// of charges under an algorithm, and others under the next.
func TestGarbage(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	server := newServer(t, clock, redistest.StartAt(t, clock).Addr)
	for n, a := range casetest.Algorithms() {
		some := func(i int) []store.Charge {
			return []store.Charge{oneOfEach[(n+i)%3], oneOfEach[3+(n+i)%3], oneOfEach[6+(n+i)%3]}
		}
		for i, text := range garbage {
			server.do("FLUSHALL")
			charged(t, server.store, a, fmt.Sprintf("%.60q", text), func(name string) {
				server.do("SET", name, text, "EX", 3600)
			}, some(i)...)
		}
		for i, scores := range [][]float64{{0}, {-1, 1}, {1e300, -1e300}, {1 << 62, 1 << 63}, {1728000000000000.5, 1728000000000001}, {1728000030000000, 1728000090000000}, {1728000000000000, 1e17}} {
			server.do("FLUSHALL")
			charged(t, server.store, a, fmt.Sprintf("scores %v", scores), func(name string) {
				server.do("DEL", name)
				for i, score := range scores {
					server.do("ZADD", name, strconv.FormatFloat(score, 'f', -1, 64), i)
				}
			}, some(i)...)
		}
	}
}

// FuzzState writes anything to the key of a state, and to that of a log.
func FuzzState(f *testing.F) {
	for i, text := range garbage {
		f.Add(text, uint8(i), uint8(i/10), float64(i), float64(1728000000000000))
		f.Add(text, uint8(i/3), uint8(i), -float64(i), float64(len(text)))
	}
	m, err := miniredis.Run()
	if err != nil {
		f.Fatal(err)
	}
	defer m.Close()
	m.SetTime(storetest.NewClock().Now())
	s := newStore(f, m.Addr(), redisstore.Config{})
	as := casetest.Algorithms()
	f.Fuzz(func(t *testing.T, text string, algorithm, kind uint8, score, other float64) {
		a, c := as[int(algorithm)%len(as)], oneOfEach[int(kind)%len(oneOfEach)]
		m.FlushAll()
		charged(t, s, a, fmt.Sprintf("%.60q", text), func(name string) {
			m.Del(name)
			if err := m.Set(name, text); err != nil {
				t.Fatal(err)
			}
		}, c)
		if score != score || other != other { // no server keeps that
			return
		}
		m.FlushAll()
		charged(t, s, algorithms.SlidingLog{}, fmt.Sprintf("scores %v and %v", score, other), func(name string) {
			m.Del(name)
			for member, score := range map[string]float64{text: score, "1": other} {
				if _, err := m.ZAdd(name, score, member); err != nil {
					t.Fatal(err)
				}
			}
		}, c)
	})
}
