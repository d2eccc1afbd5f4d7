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

func newText(ctx context.Context, args ...any) textDecision {
	return textDecision{redis.NewStringCmd(ctx, args...)}
}

func newNumbers(ctx context.Context, args ...any) numbersDecision {
	return numbersDecision{redis.NewIntSliceCmd(ctx, args...)}
}
