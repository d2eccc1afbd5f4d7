package main

import (
	"context"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// redisVault is a vault in Redis, so that a code can be redeemed wherever it
// comes in, whichever process sent it. Redis drops what has expired.
type redisVault struct{ client redis.UniversalClient }

// takeScript compares and deletes in one step: between two commands, the same
// code could be redeemed twice. What it compares are hashes, so that the time
// this takes tells nothing of a code.
var takeScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`)

func (v redisVault) put(ctx context.Context, phone string, m mac) error {
	return v.client.Set(ctx, vaultKey(phone), hex.EncodeToString(m[:]), codeLife).Err()
}

// take can't say whether the code was taken where the answer is lost. It is not
// valid then: a code that works twice would be worse than one that has to be sent
// again.
func (v redisVault) take(ctx context.Context, phone string, m mac) (bool, error) {
	n, err := takeScript.Run(ctx, v.client, []string{vaultKey(phone)}, hex.EncodeToString(m[:])).Int()
	return n == 1, err
}

func vaultKey(phone string) string { return "sms-verify:code:" + phone }
