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

// A decision is not sent again once it may have reached the server: the charge
// would be made twice. go-redis retries all other commands after a read time-out
// or a cut connection; of these, NoRetry tells it not to.
type (
	textDecision    struct{ *redis.StringCmd }
	numbersDecision struct{ *redis.IntSliceCmd }
)

func (textDecision) NoRetry() bool    { return true }
func (numbersDecision) NoRetry() bool { return true }

// run sends a script by its hash. A server that does not know it, new or
// restarted, has not run it, and is sent the text, once.
func run[C redis.Cmder](ctx context.Context, c Client, s *script, args []any, decision func(context.Context, ...any) C) (C, error) {
	args[0], args[1] = "evalsha", s.sha
	cmd := decision(ctx, args...)
	err := send(ctx, c, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", s.body
		cmd = decision(ctx, args...)
		err = send(ctx, c, cmd)
	}
	return cmd, err
}

// send sends a command. A client that queues it has no error of its own.
func send(ctx context.Context, c Client, cmd redis.Cmder) error {
	if err := c.Process(ctx, cmd); err != nil {
		return err
	}
	return cmd.Err()
}

func newText(ctx context.Context, args ...any) textDecision {
	return textDecision{redis.NewStringCmd(ctx, args...)}
}

func newNumbers(ctx context.Context, args ...any) numbersDecision {
	return numbersDecision{redis.NewIntSliceCmd(ctx, args...)}
}
