package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
)

const testSecret = "0123456789abcdef"

func TestParseRedis(t *testing.T) {
	open := func(value string) redis.UniversalClient {
		t.Helper()
		connect, err := parseRedis("-redis", value)
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		client := connect()
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	for value, want := range map[string]redis.Options{
		"redis://localhost":                             {Addr: "localhost:6379", DialTimeout: redisDialTimeout, ReadTimeout: redisReadTimeout},
		"redis://u:p%40ss@example.com:1/3":              {Addr: "example.com:1", Username: "u", Password: "p@ss", DB: 3, DialTimeout: redisDialTimeout, ReadTimeout: redisReadTimeout},
		"rediss://[::1]?dial_timeout=2&read_timeout=3s": {Addr: "[::1]:6379", DialTimeout: 2 * time.Second, ReadTimeout: 3 * time.Second},
	} {
		got := open(value).(*redis.Client).Options()
		if got.Addr != want.Addr || got.Username != want.Username || got.Password != want.Password || got.DB != want.DB ||
			got.DialTimeout != want.DialTimeout || got.ReadTimeout != want.ReadTimeout || got.WriteTimeout != want.ReadTimeout ||
			!got.ContextTimeoutEnabled || got.DialerRetries != redisDials || (got.TLSConfig != nil) != strings.HasPrefix(value, "rediss:") {
			t.Errorf("%s: %+v", value, got)
		}
	}
	cluster := open("rediss+cluster://u:p@a:1?addr=b:2&addr=c:3").(*redis.ClusterClient).Options()
	if strings.Join(cluster.Addrs, " ") != "a:1 b:2 c:3" || cluster.Password != "p" || cluster.TLSConfig == nil || !cluster.ContextTimeoutEnabled || cluster.ReadTimeout != redisReadTimeout {
		t.Errorf("cluster: %+v", cluster)
	}
	sentinel := open("redis+sentinel://a:1/2?addr=b:2&master_name=m&password=p").(*redis.Client).Options()
	if sentinel.Addr != "FailoverClient" || sentinel.DB != 2 || sentinel.Password != "p" || !sentinel.ContextTimeoutEnabled || sentinel.ReadTimeout != redisReadTimeout {
		t.Errorf("sentinel: %+v", sentinel)
	}
	// All keys of a cluster have one tag, so that a phone and an address can be one
	// decision; newServer asks the store for that.
	for _, value := range []string{"redis://a", "redis+cluster://a", "redis+sentinel://a?master_name=m"} {
		s, err := redisStore(open(value))
		if err == nil {
			_, err = newServer(config{store: s})
		}
		if err != nil {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// Each mistake names the flag, the value and the reason, and shows no part of
// the password.
func TestRedisMistakes(t *testing.T) {
	t.Setenv(secretVariable, testSecret)
	for _, c := range []struct{ value, shown, reason string }{
		{"localhost:6379", `"localhost:6379"`, "must begin with redis://"},
		{"http://u:hunter2@h:1", `"http://***@h:1"`, "must begin with redis://"},
		{"u:hunter2@h:1", `"***@h:1"`, "must begin with redis://"},
		{"redis+ring://u:hunter2@h:1", `"redis+ring://***@h:1"`, "must begin with redis://"},
		{"redis://u:hunter2@h:port", `"redis://***@h:port"`, "is not a URL"},
		{"redis://u:hun/ter2@h:1/0", `"redis://***@h:1/0"`, "special characters"},
		{"redis://u:1/hunter2@h:1", `"redis://***@h:1"`, "special characters"},
		{"redis://u:1#hunter2@h:1", `"redis://***@h:1"`, "special characters"},
		{"redis://u:1?hunter2@h:1", `"redis://***@h:1"`, "special characters"},
		{"redis://u:hunter2%zz@h:1", `"redis://***@h:1"`, "special characters"},
		{"redis://u:hun@ter2@h:1/x", `"redis://***@h:1/x"`, "invalid database number"},
		{"redis://u:hunter2@h:1/x", `"redis://***@h:1/x"`, `invalid database number: "x"`},
		{"redis://h:1?pool_size=-1", `"redis://h:1"`, `the option "pool_size" is none of addr, db`},
		{"redis://h:1?read_timeout=soon", `"redis://h:1"`, "read_timeout"},
		{"redis://h:1?addr=i:2", `"redis://h:1"`, "unexpected option: addr"},
		{"redis+cluster://u:hunter2@h:1/3", `"redis+cluster://***@h:1/3"`, `no database "3"`},
		{"redis+cluster://h:1?addr=nowhere", `"redis+cluster://h:1"`, "unable to parse addr"},
		{"redis+sentinel://h:1?password=hunter2", `"redis+sentinel://h:1"`, "master_name=mymaster"},
	} {
		var stdout, stderr bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) // where it serves, by mistake
		defer stop()
		got := run(ctx, []string{"-addr", "127.0.0.1:0", "-redis", c.value}, &stdout, &stderr)
		text := stderr.String()
		if got != exitUsage || !strings.Contains(text, "-redis "+c.shown) || !strings.Contains(text, c.reason) {
			t.Errorf("%s: exit code %d, stderr %s", c.value, got, text)
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, "ter2") || stdout.Len() > 0 {
			t.Errorf("%s: tells the password or more: %s%s", c.value, text, &stdout)
		}
	}
	for secret, why := range map[string]string{"": "it has 0", "0123456789abcde": "it has 15"} {
		t.Setenv(secretVariable, secret)
		var stderr bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		if got := run(ctx, []string{"-addr", "127.0.0.1:0", "-redis", "redis://h"}, &stderr, &stderr); got != exitUsage || !strings.Contains(stderr.String(), secretVariable) ||
			!strings.Contains(stderr.String(), why) || secret != "" && strings.Contains(stderr.String(), secret) {
			t.Errorf("secret %q: exit code %d, %s", secret, got, &stderr)
		}
	}
}

// A server without its Redis starts, answers 503 and nothing else, and goes on
// once Redis is there.
func TestRedisAway(t *testing.T) {
	server := redistest.Start(t)
	addr := server.Addr
	server.Stop()
	p := startProgram(t, "redis://"+addr)
	for path, body := range map[string]string{"codes": `{"phone":"+12025550142"}`, "verifications": `{"phone":"+12025550142","code":"000000"}`} {
		start := time.Now()
		if got := post(http.DefaultClient, p.url+path, body); got != http.StatusServiceUnavailable {
			t.Errorf("%s without Redis: status %d, want 503", path, got)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s without Redis: took %v", path, took)
		}
	}
	if strings.Contains(p.stdout.String(), "text message") {
		t.Errorf("sent without Redis:\n%s", p.stdout)
	}

	_, port, _ := strings.Cut(addr, ":")
	redistest.Start(t, "--port", port)
	deadline := time.Now().Add(10 * time.Second)
	for post(http.DefaultClient, p.url+"codes", `{"phone":"+12025550142"}`) != http.StatusAccepted {
		if time.Now().After(deadline) {
			t.Fatal("Redis is back, and the server does not answer")
		}
		time.Sleep(50 * time.Millisecond) // Redis and the client take their time
	}
}
