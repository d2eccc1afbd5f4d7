package cellstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/cellstore"
)

func gcra(t testing.TB, name string, l algorithms.Limit) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// answering is a client that keeps what it is sent and has an answer ready.
type answering struct {
	sent  []string
	reply any
	err   error
}

func (a *answering) Process(_ context.Context, cmd redis.Cmder) error {
	a.sent = append(a.sent, strings.TrimSpace(fmt.Sprintln(cmd.Args()...)))
	if a.err != nil {
		cmd.SetErr(a.err)
		return a.err
	}
	switch cmd := cmd.(type) {
	case interface{ SetVal(any) }:
		cmd.SetVal(a.reply)
	default:
		return fmt.Errorf("%T is not expected", cmd)
	}
	return nil
}

func newStore(t testing.TB, c cellstore.Client) *cellstore.Store {
	t.Helper()
	s, err := cellstore.New(c, cellstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ints(n ...int64) []any {
	var values []any
	for _, v := range n {
		values = append(values, v)
	}
	return values
}

// What is sent for a limit, and that no limit is sent that the module can't count.
func TestCommand(t *testing.T) {
	for l, want := range map[algorithms.Limit]string{
		algorithms.PerMinute(30).WithBurst(16):           "15 30 60",
		algorithms.PerMinute(30):                         "29 30 60",
		algorithms.PerSecond(1).WithBurst(1):             "0 1 1",
		{Count: 5, Period: 500 * time.Millisecond}:       "4 10 1",
		{Count: 3, Period: 7 * time.Microsecond * 100}:   "2 30000 7",
		{Count: 10_000_000, Period: 30 * 24 * time.Hour}: "9999999 10000000 2592000",
		{Count: 1, Period: 50 * 365 * 24 * time.Hour}:    "0 1 1576800000",
		algorithms.PerSecond(1_000_000):                  "999999 1000000 1",
	} {
		burst := l.Burst
		if burst == 0 {
			burst = l.Count
		}
		a := &answering{reply: ints(0, burst, burst-1, -1, 2)}
		if _, err := store.Take(t.Context(), newStore(t, a), gcra(t, "p", l), "k", 1); err != nil {
			t.Errorf("%v: %v", l, err)
		}
		if got := []string{"cl.throttle weir-cell:{k}:p:gcra:cell " + want + " 1"}; !slices.Equal(a.sent, got) {
			t.Errorf("%v: sent %q, want %q", l, a.sent, got)
		}
	}
	for _, l := range []algorithms.Limit{
		{Count: 1_000_001, Period: time.Second},
		{Count: 1, Period: 80 * 365 * 24 * time.Hour},
		{Count: 1, Period: time.Hour, Burst: 1 << 40},
		{Count: 1 << 53, Period: time.Hour + time.Microsecond, Burst: 1},
	} {
		a := &answering{}
		s, p := newStore(t, a), gcra(t, "p", l)
		if err := s.Validate(p); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v", l, err)
		}
		if _, err := store.Take(t.Context(), s, p, "k", 1); !errors.Is(err, errors.ErrUnsupported) || a.sent != nil {
			t.Errorf("%v: %v, sent %q", l, err, a.sent)
		}
	}
}

func TestValidate(t *testing.T) {
	s := newStore(t, &answering{})
	p, q := gcra(t, "p", algorithms.PerMinute(1)), gcra(t, "q", algorithms.PerMinute(1))
	window, err := algorithms.NewPolicy("w", algorithms.FixedWindow{}, algorithms.PerMinute(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(p); err != nil {
		t.Error(err)
	}
	for says, policies := range map[string][]*algorithms.Policy{
		"store.Sequential":    {p, q},
		"not by fixed-window": {window},
		"is missing":          {nil},
	} {
		if err := s.Validate(policies...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	group := []store.Charge{{Policy: p, Key: "k", Cost: 1}, {Policy: q, Key: "k", Cost: 1}}
	if err := s.Take(t.Context(), group, make([]algorithms.Result, 2)); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a group: %v", err)
	}
}

func TestNewMistakes(t *testing.T) {
	var none *redis.Client
	deaf := redis.NewClient(&redis.Options{})
	defer deaf.Close()
	for name, c := range map[string]struct {
		client cellstore.Client
		config cellstore.Config
		fields int
	}{
		"nil":         {nil, cellstore.Config{}, 1},
		"nil pointer": {none, cellstore.Config{}, 1},
		"deaf":        {deaf, cellstore.Config{}, 1},
		"all":         {deaf, cellstore.Config{Prefix: "{\xff"}, 3},
	} {
		s, err := cellstore.New(c.client, c.config)
		if s != nil || err == nil {
			t.Fatalf("%s: accepted", name)
		}
		if n := len(err.(interface{ Unwrap() []error }).Unwrap()); n != c.fields {
			t.Errorf("%s: %v; want %d mistakes", name, err, c.fields)
		}
	}
}

// Replies as the module gives them, and as it does not.
func TestReplies(t *testing.T) {
	type result = algorithms.Result
	const second, never = time.Second, algorithms.Never
	p := gcra(t, "p", algorithms.PerMinute(30).WithBurst(16)) // 2 s a unit
	for _, c := range []struct {
		cost  int64
		reply []any
		want  result
	}{
		{1, ints(0, 16, 15, -1, 2), result{Limit: 16, Remaining: 15, ResetAfter: 2 * second}},
		{1, ints(0, 16, 0, -1, 32), result{Limit: 16, RetryAfter: 2 * second, ResetAfter: 32 * second}},
		{1, ints(1, 16, 0, 2, 32), result{Limited: true, Limit: 16, RetryAfter: 2 * second, ResetAfter: 32 * second}},
		{1, ints(1, 16, 0, 0, 30), result{Limited: true, Limit: 16, RetryAfter: time.Millisecond, ResetAfter: 30 * second}},
		{1, []any{"0", "16", "15", "-1", "2"}, result{Limit: 16, Remaining: 15, ResetAfter: 2 * second}},
		{1, ints(0, 16, 99, -1, 2), result{Limit: 16, Remaining: 15, ResetAfter: 2 * second}},
		{0, ints(1, 16, 15, -1, 2), result{Limit: 16, Remaining: 15, ResetAfter: 2 * second}},
		{0, ints(1, 16, 0, -1, 32), result{Limited: true, Limit: 16, RetryAfter: 2 * second, ResetAfter: 32 * second}},
		{17, ints(1, 16, 16, -1, 0), result{Limited: true, Limit: 16, Remaining: 16, RetryAfter: never}},
		{1 << 62, ints(1, 16, 16, -1, 0), result{Limited: true, Limit: 16, Remaining: 16, RetryAfter: never}},
	} {
		if got, err := store.Take(t.Context(), newStore(t, &answering{reply: c.reply}), p, "k", c.cost); err != nil || got != c.want {
			t.Errorf("cost %d, %v: %+v, %v; want %+v", c.cost, c.reply, got, err, c.want)
		}
	}
	for _, reply := range []any{
		nil, "OK", int64(1), ints(), ints(0, 5), ints(0, 16, 15, -1, 2, 7), ints(2, 16, 15, -1, 2), ints(0, 16, 15, -2, 2), ints(0, 16, 15, -1, -1),
		ints(0, 15, 15, -1, 2), ints(1, 16, 0, -1, 2), ints(1, 16, 0, 1<<62, 2), ints(0, 16, 0, -1, 1<<62),
		[]any{"0", "16", "x", "-1", "2"}, []any{"0", "16", "", "-1", "2"}, []any{int64(0), int64(16), 15.5, int64(-1), int64(2)}, []any{nil, nil, nil, nil, nil},
	} {
		if r, err := store.Take(t.Context(), newStore(t, &answering{reply: reply}), p, "k", 1); err == nil || r != (result{}) {
			t.Errorf("%v: %+v, %v", reply, r, err)
		}
	}
}

// An error is neither a refusal nor a pass, and says what to do.
func TestErrors(t *testing.T) {
	p := gcra(t, "p", algorithms.PerMinute(1))
	for _, c := range []struct {
		text string
		is   error
	}{
		{"ERR unknown command 'CL.THROTTLE', with args beginning with: 'k' ", cellstore.ErrNoModule},
		{"ERR unknown command 'cl.throttle'", cellstore.ErrNoModule},
		{"ERR Cell error: cannot parse integer from empty string", nil},
		{"READONLY You can't write against a read only replica.", nil},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", nil},
	} {
		for _, cost := range []int64{1, 0, -1, 2} {
			a := &answering{err: replyError(c.text)}
			r, err := store.Take(t.Context(), newStore(t, a), p, "k", cost)
			if err == nil || strings.Contains(err.Error(), "args") || r.Limit != 0 || c.is != nil && cost >= 0 && !errors.Is(err, c.is) || // a give-back is a script
				!store.IsFailure(t.Context(), err) || len(a.sent) != 1 {
				t.Errorf("%s, cost %d: %+v, %v; sent %q", c.text, cost, r, err, a.sent)
			}
		}
	}
	if _, err := store.Take(t.Context(), newStore(t, &answering{err: redis.Nil}), p, "k", 1); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("nil: %v", err)
	}
}

// replyError is an error that a server gives.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}
