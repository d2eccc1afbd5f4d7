package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/redisstore"
)

// A read time-out is a fault that the client itself must notice, so it is real
// time. go-redis reckons it from a clock that is up to 50 ms old: the time-out
// may come that much early, and is set long enough for the answer to a connection
// that was opened just now.
const readTimeout = 200 * time.Millisecond

// These are read time-outs that do not come in a test. The latter leaves it to
// the caller's deadline.
const (
	never    = time.Minute
	deadline = 2 * time.Minute
)

// each runs f with a store of each kind of client, for a single charge, which
// has scripts of its own, and for a group.
func each(t *testing.T, timeout time.Duration, f func(t *testing.T, r *rig, s *redisstore.Store, k kind, ps []*algorithms.Policy)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			r, timeout := newRig(t), timeout
			if k.batches && timeout == deadline {
				timeout = readTimeout // no caller's deadline ends it
			}
			s := r.open(t, k, timeout)
			for n := range 2 {
				t.Run(fmt.Sprintf("%d", n+1), func(t *testing.T) { f(t, r, s, k, some(t, n+1)) })
			}
		})
	}
}

func TestReplyTooLate(t *testing.T) {
	each(t, readTimeout, func(t *testing.T, r *rig, s *redisstore.Store, _ kind, ps []*algorithms.Policy) {
		r.meet(t, always(hold))
		_, err := ask(t.Context(), s, "k", ps...)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("err = %v; want a time-out", err)
		}
		r.once(t, "k", 1, ps...)

		// The late reply is not taken for that of another command.
		r.meet(t, nil)
		r.release()
		if got, err := ask(t.Context(), s, "k", lasting(t, fmt.Sprintf("next%d", len(ps)), 7)); err != nil || got.Limit != 7 || got.Remaining != 6 {
			t.Errorf("the next: %+v, %v; want its own answer, 6 of 7", got, err)
		}
	})
}

func TestDeadlinePasses(t *testing.T) {
	each(t, deadline, func(t *testing.T, r *rig, s *redisstore.Store, _ kind, ps []*algorithms.Policy) {
		r.meet(t, always(hold))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // see readTimeout
		defer cancel()
		if _, err := ask(ctx, s, "k", ps...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v; want one that is context.DeadlineExceeded", err)
		}
		r.once(t, "k", 1, ps...)
	})
}

// The deadline of a connection may strike before that of the context, which
// then is not done when the error is returned.
func TestDeadlineIsAlwaysNamed(t *testing.T) {
	r := newRig(t)
	s := r.open(t, kinds[0], never)
	r.meet(t, always(hold))
	p := lasting(t, "deadline", 1000)
	const takes = 100
	var others []error
	for range takes {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond) // there are many
		if _, err := ask(ctx, s, "k", p); !errors.Is(err, context.DeadlineExceeded) {
			others = append(others, err)
		}
		cancel()
	}
	if others != nil {
		t.Errorf("%d of %d errors were not context.DeadlineExceeded, such as: %v", len(others), takes, others[0])
	}
}

func TestConnectionCut(t *testing.T) {
	each(t, never, func(t *testing.T, r *rig, s *redisstore.Store, _ kind, ps []*algorithms.Policy) {
		r.meet(t, always(lose))
		if _, err := ask(t.Context(), s, "after", ps...); err == nil {
			t.Error("cut before the reply: no error")
		}
		r.once(t, "after", 1, ps...)

		r.meet(t, always(cut))
		if _, err := ask(t.Context(), s, "before", ps...); err == nil {
			t.Error("cut before the command arrived: no error")
		}
		r.once(t, "before", 0, ps...)
	})
}

func TestUnknownScript(t *testing.T) {
	each(t, never, func(t *testing.T, r *rig, s *redisstore.Store, _ kind, ps []*algorithms.Policy) {
		r.meet(t, nil)
		if err := r.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := ask(t.Context(), s, "k", ps...); err != nil || got.Remaining != 9 {
			t.Errorf("got %+v, %v", got, err)
		}
		if sha, text := r.count("evalsha"), r.count("eval"); sha != 1 || text != 1 {
			t.Errorf("%d EVALSHA and %d EVAL; want one each", sha, text)
		}
		for _, p := range ps {
			if n := r.charged(t, p, "k"); n != 1 {
				t.Errorf("%d units of %s are charged", n, p.Name())
			}
		}
		r.meet(t, nil)
		if got, err := ask(t.Context(), s, "k", ps...); err != nil || got.Remaining != 8 || r.count("eval") != 0 {
			t.Errorf("the next: %+v, %v, %d EVAL", got, err, r.count("eval"))
		}
	})
}

// SF-09: a fault that never goes away is not chased.
func TestEndlessFault(t *testing.T) {
	each(t, never, func(t *testing.T, r *rig, s *redisstore.Store, k kind, ps []*algorithms.Policy) {
		faults := map[string]int{ // the most commands for one call; a newer go-redis sends fewer
			"-NOSCRIPT No matching script.\r\n":                          2,
			"-READONLY You can't write against a read only replica.\r\n": k.readOnly,
		}
		for answer, most := range faults {
			prefix, _, _ := strings.Cut(answer[1:], " ")
			for range 2 {
				r.meet(t, always(answer))
				if _, err := ask(t.Context(), s, "k", ps...); !redis.HasErrorPrefix(err, prefix) {
					t.Errorf("err = %v; want %s", err, prefix)
				}
				if n := r.decisions(); n < 1 || n > most {
					t.Errorf("%d commands for one call and %s; want 1 to %d", n, prefix, most)
				}
			}
		}
	})
}

// One request is one command, for any number of policies; and nothing is
// written for any of them if one refuses.
func TestRequestIsOneCommand(t *testing.T) {
	r := newRig(t)
	s, err := redisstore.New(oneClient(t, r, never), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rules := []middleware.Rule{
		{Policy: lasting(t, "first", 10), Key: keyfunc.Header("User")},
		{Policy: lasting(t, "second", 20), Key: keyfunc.Header("User")},
		{Policy: lasting(t, "third", 1), Key: keyfunc.Const("all")},
		{Policy: lasting(t, "fourth", 30), Key: keyfunc.Header("User")},
	}
	m, err := middleware.New(middleware.Config{Store: s, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	serve := func(user string) int {
		q := httptest.NewRequest("GET", "/", nil)
		q.Header.Set("User", user)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		return w.Code
	}
	if code := serve("ann"); code != http.StatusOK {
		t.Fatalf("the first request: %d", code)
	}
	keys := []string{"weir:{ann}:first:gcra", "weir:{ann}:second:gcra", "weir:{all}:third:gcra", "weir:{ann}:fourth:gcra"}
	dump := func() (values string) {
		if n := r.client.DBSize(t.Context()).Val(); n != 4 {
			t.Errorf("there are %d keys; want four", n)
		}
		for _, k := range keys {
			v, err := r.client.Dump(t.Context(), k).Result()
			if err != nil {
				t.Errorf("DUMP %s: %v", k, err)
			}
			values += v
		}
		return values
	}
	before := dump()
	for _, user := range []string{"ann", "bob"} {
		r.meet(t, nil)
		if code := serve(user); code != http.StatusTooManyRequests {
			t.Errorf("%s: %d; want a refusal", user, code)
		}
		if n := r.decisions(); n != 1 {
			t.Errorf("%s: %d commands; want 1", user, n)
		}
	}
	if dump() != before {
		t.Error("a refused request changed a key")
	}
}

// A Pipeline only collects commands. If New does not refuse one, then a Take is
// an error, and the charge is made, once, when what was collected is sent.
func TestPipelineOnlyCollects(t *testing.T) {
	r := newRig(t)
	p := lasting(t, "collected", 10)
	if _, err := ask(t.Context(), r.direct, "known script", p); err != nil {
		t.Fatal(err)
	}
	pipe := r.client.Pipeline()
	s, err := redisstore.New(pipe, redisstore.Config{})
	if err != nil {
		return
	}
	if got, err := ask(t.Context(), s, "k", p); err == nil {
		t.Errorf("a decision that was not made: %+v", got)
	}
	if n := r.charged(t, p, "k"); n != 0 {
		t.Errorf("%d units are charged before Exec", n)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := r.charged(t, p, "k"); n != 1 {
		t.Errorf("%d units are charged after Exec", n)
	}
}
