package cellstore

import (
	"context"
	_ "embed"
	"math"

	"github.com/weirgo/weir/internal/goredis"
)

//go:embed refund.lua
var refundLua string

var refund = goredis.NewScript(refundLua)

// giveBack gives back what still counts of -cost units that were taken age µs
// ago: never more than the key has.
func (s *Store) giveBack(ctx context.Context, key string, l limit, cost, age int64) error {
	back := max(cost, -l.burst) * -l.interval
	if age > math.MaxInt64/1000 || age*1000 >= back {
		return nil
	}
	back -= age * 1000
	args := []any{nil, nil, 1, key, back / 1_000_000, back % 1_000_000}
	if _, err := goredis.Run(ctx, s.client, refund, args, newDecision); err != nil {
		return goredis.Failure(ctx, err)
	}
	return nil
}
