package cellstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/cellstore"
	"github.com/weirgo/weir/store/storetest"
)

func forget(t *testing.T, s *cellstore.Store, p *algorithms.Policy, key string) (algorithms.Result, error) {
	t.Helper()
	rs := make([]algorithms.Result, 1)
	err := s.Take(t.Context(), []store.Charge{{Policy: p, Key: key, Mode: store.Forget}}, rs)
	return rs[0], err
}

// What is forgotten is gone, and the module finds it new.
func TestForgottenKeysAreGone(t *testing.T) {
	s := newServer(t, storetest.NewClock())
	p := gcra(t, "p", algorithms.PerMinute(30).WithBurst(16))
	fresh := algorithms.Result{Limit: 16, Remaining: 16}
	for _, key := range []string{"k", "\xff", "{}", strings.Repeat("long", 100)} {
		for _, used := range []int64{0, 1, 16} {
			if used > 0 {
				s.take(p, key, used)
			}
			s.take(p, "other", 1)
			s.clock.Advance(time.Second)
			if r, err := forget(t, s.store, p, key); err != nil || r != fresh {
				t.Errorf("%d used of %q: %+v, %v", used, key, r, err)
			}
			if keys := s.redis.Keys(); !slices.Equal(keys, []string{"weir-cell:{other}:p:gcra:cell"}) {
				t.Errorf("%d used of %q: there is %q", used, key, keys)
			}
			if r := s.take(p, key, 16); r.Limited {
				t.Errorf("%d used of %q, then forgotten: %+v", used, key, r)
			}
			if _, err := forget(t, s.store, p, key); err != nil {
				t.Error(err)
			}
		}
	}
}

// It is one command, is not sent for a limit that the module can't count, and is
// an error where the server says so.
func TestForgetIsOneCommand(t *testing.T) {
	p := gcra(t, "p", algorithms.PerMinute(5))
	a := &answering{reply: int64(1)}
	if r, err := forget(t, newStore(t, a), p, "k"); err != nil || r.Remaining != 5 || len(a.sent) != 1 || !strings.HasPrefix(a.sent[0], "evalsha ") || !strings.HasSuffix(a.sent[0], " 1 weir-cell:{k}:p:gcra:cell") {
		t.Errorf("%+v, %v; sent %q", r, err, a.sent)
	}
	a = &answering{}
	if _, err := forget(t, newStore(t, a), gcra(t, "p", algorithms.PerSecond(1_000_001)), "k"); err == nil || a.sent != nil {
		t.Errorf("%v; sent %q", err, a.sent)
	}
	for _, text := range []string{"READONLY You can't write against a read only replica.", "LOADING Redis is loading the dataset in memory"} {
		a = &answering{err: replyError(text)}
		if r, err := forget(t, newStore(t, a), p, "k"); err == nil || r != (algorithms.Result{}) || len(a.sent) != 1 {
			t.Errorf("%s: %+v, %v; sent %q", text, r, err, a.sent)
		}
	}
	group := []store.Charge{{Policy: p, Key: "k", Mode: store.Forget}, {Policy: p, Key: "l", Mode: store.Forget}}
	a = &answering{}
	if err := newStore(t, a).Take(t.Context(), group, make([]algorithms.Result, 2)); err == nil || a.sent != nil {
		t.Errorf("a group: %v; sent %q", err, a.sent)
	}
}

// The script that forgets, on a real Redis, which lacks the module: what is none of
// the module's numbers is an error, and stays; and the rights that docs/redis-cell.md
// names are what it needs.
func TestForgetInRedis(t *testing.T) {
	clock := storetest.NewClock()
	node := redistest.StartAt(t, clock)
	p := gcra(t, "p", algorithms.PerMinute(30).WithBurst(16))
	const key = "weir-cell:{k}:p:gcra:cell"
	rights := []any{"+evalsha", "+eval", "+get", "+del"}
	by := func(rights ...any) *cellstore.Store {
		node.Do(t, "SCRIPT", "FLUSH")
		node.Do(t, "ACL", "DELUSER", "limiter")
		node.Do(t, append([]any{"ACL", "SETUSER", "limiter", "on", ">secret", "resetchannels", "~weir-cell:*"}, rights...)...)
		client := redis.NewClient(&redis.Options{Addr: node.Addr, Username: "limiter", Password: "secret", ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		return newStore(t, client)
	}
	s := by(rights...)
	for _, value := range []string{"1728000030000000000", "0", "18446744073709551615"} {
		node.Do(t, "SET", key, value)
		if r, err := forget(t, s, p, "k"); err != nil || r.Remaining != 16 || node.Do(t, "EXISTS", key) != int64(0) {
			t.Errorf("%s: %+v, %v", value, r, err)
		}
	}
	if r, err := forget(t, s, p, "k"); err != nil || r.Remaining != 16 {
		t.Errorf("a key never seen: %+v, %v", r, err)
	}
	for _, put := range [][]any{
		{"SET", key, "abc"}, {"SET", key, ""}, {"SET", key, "1 2 3"}, {"SET", key, "-1"}, {"SET", key, "1.5"}, {"SET", key, "12\n"}, {"RPUSH", key, "1"}, {"HSET", key, "1", "2"},
	} {
		node.Do(t, "DEL", key)
		node.Do(t, put...)
		before := node.Do(t, "DUMP", key)
		_, err := forget(t, s, p, "k")
		if !redis.HasErrorPrefix(err, "WEIRSTATE ") && !redis.HasErrorPrefix(err, "WRONGTYPE ") || strings.Contains(err.Error(), "{k}") || node.Do(t, "DUMP", key) != before {
			t.Errorf("%q: %v", put, err)
		}
	}
	node.Do(t, "DEL", key)
	for i, right := range rights {
		node.Do(t, "SET", key, "1728000030000000000")
		if _, err := forget(t, by(slices.Delete(slices.Clone(rights), i, i+1)...), p, "k"); err == nil {
			t.Errorf("%s is not needed", right)
		}
	}
}
