package goredis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

// Script is a text that Redis knows by its SHA-1.
type Script struct {
	body string
	sha  string
}

// NewScript makes a Script.
func NewScript(body string) *Script {
	sum := sha1.Sum([]byte(body))
	return &Script{body, hex.EncodeToString(sum[:])}
}

// Run sends s by its hash. A server that does not know it, new or restarted, has
// not run it, and is sent the text, once. The first two of args are left for Run.
// command makes the command that is sent: one that go-redis does not send again.
func Run[C redis.Cmder](ctx context.Context, c Client, s *Script, args []any, command func(context.Context, ...any) C) (C, error) {
	args[0], args[1] = "evalsha", s.sha
	cmd := command(ctx, args...)
	err := Send(ctx, c, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", s.body
		cmd = command(ctx, args...)
		err = Send(ctx, c, cmd)
	}
	return cmd, err
}
