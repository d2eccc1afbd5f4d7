package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store/storetest"
)

func newClient(t *testing.T, addr string) redis.UniversalClient {
	t.Helper()
	connect, err := parseRedis("-redis", "redis://"+addr+"?"+patient)
	if err != nil {
		t.Fatal(err)
	}
	client := connect()
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A vault in Redis does what one in memory does.
func TestRedisVault(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (client redis.UniversalClient, advance func(time.Duration)){
		"mini": func(t *testing.T) (redis.UniversalClient, func(time.Duration)) {
			clock := storetest.NewClock()
			return newClient(t, redistest.Mini(t, clock).Addr()), clock.Advance
		},
		"real": func(t *testing.T) (redis.UniversalClient, func(time.Duration)) {
			client := newClient(t, redistest.Start(t).Addr)
			return client, func(d time.Duration) { // its clock can't be set: bring the ends nearer
				for _, key := range client.Keys(t.Context(), "*").Val() {
					client.PExpire(t.Context(), key, max(client.PTTL(t.Context(), key).Val()-d, 0))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, advance := open(t)
			// Two processes with one secret.
			one, two := testCodes{&codes{[]byte(testSecret), redisVault{client}}, t, nil}, testCodes{&codes{[]byte(testSecret), redisVault{client}}, t, nil}

			code := one.issue(alice)
			if two.redeem(alice, other(code)) || two.redeem(bob, code) {
				t.Error("a wrong code is valid")
			}
			if !two.redeem(alice, code) || one.redeem(alice, code) {
				t.Error("a code must work once, in any process")
			}

			first := one.issue(alice)
			advance(9 * time.Minute)
			second := two.issue(alice)
			for second == first {
				second = two.issue(alice)
			}
			if one.redeem(alice, first) {
				t.Error("the code before must be dead")
			}
			advance(9 * time.Minute)
			if !one.redeem(alice, second) {
				t.Error("the new code must have its own 10 minutes")
			}
			code = one.issue(alice)
			advance(codeLife + time.Millisecond)
			if one.redeem(alice, code) {
				t.Error("a code lives for 10 minutes and no longer")
			}

			for i := range 20 {
				phone := fmt.Sprintf("+120255501%02d", i)
				code := one.issue(phone)
				got := together(4, func() int {
					valid, err := []testCodes{one, two}[i%2].codes.redeem(t.Context(), phone, code)
					if err != nil {
						return -1
					}
					return map[bool]int{true: 1}[valid]
				})
				if got[1] != 1 || got[0] != 3 {
					t.Fatalf("one code four times at once: %v, want it valid once", got)
				}
			}
		})
	}
}

func TestRedisVaultAway(t *testing.T) {
	server := redistest.Start(t)
	c := &codes{[]byte(testSecret), redisVault{newClient(t, server.Addr)}}
	server.Stop()
	if _, err := c.issue(t.Context(), alice); err == nil {
		t.Error("a code that is not kept was issued")
	}
	if valid, err := c.redeem(t.Context(), alice, "000000"); err == nil || valid {
		t.Errorf("redeemed without Redis: %v, %v", valid, err)
	}
}
