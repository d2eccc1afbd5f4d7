package cellstore

import (
	"context"
	_ "embed"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/goredis"
)

//go:embed forget.lua
var forgetLua string

var forgetting = goredis.NewScript(forgetLua)

// forget makes a key one never seen. Of such a key it need not ask the module.
func (s *Store) forget(ctx context.Context, key string, l limit) (algorithms.Result, error) {
	if _, err := goredis.Run(ctx, s.client, forgetting, []any{nil, nil, 1, key}, newDecision); err != nil {
		return algorithms.Result{}, goredis.Failure(ctx, err)
	}
	return algorithms.Result{Limit: l.burst, Remaining: l.burst}, nil
}
