package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Client is what a Store sends commands to: [redis.Client], also for Sentinel,
// [redis.ClusterClient], [redis.Ring], or what wraps one of them.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// decision is a command that is not sent again once it may have reached the
// server: the charge would be made twice. go-redis retries all others after a
// read time-out or a cut connection.
type decision struct{ *redis.IntSliceCmd }

// NoRetry tells go-redis so.
func (decision) NoRetry() bool { return true }

// run sends a script by its hash. A server that does not know it, new or
// restarted, has not run it, and is sent the text, once.
func run(ctx context.Context, c Client, s *script, args []any) ([]int64, error) {
	args[0], args[1] = "evalsha", s.sha
	reply, err := send(ctx, c, args)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", s.body
		reply, err = send(ctx, c, args)
	}
	return reply, err
}

func send(ctx context.Context, c Client, args []any) ([]int64, error) {
	cmd := decision{redis.NewIntSliceCmd(ctx, args...)}
	// The key of a script comes after its number of keys; go-redis knows that of
	// EVAL and EVALSHA by their names.
	if err := c.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}
