package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/cellstore"
)

// cellStore keeps limits with redis-cell. A server without the module is no use,
// and is found out at once; one that is away may come back.
func cellStore(ctx context.Context, client redis.UniversalClient, logger *slog.Logger) (store.Store, error) {
	s, err := cellstore.New(client, cellstore.Config{Prefix: "sms-verify:cell:"})
	if err != nil {
		return nil, err
	}
	p, err := algorithms.NewPolicy("start", algorithms.GCRA{}, algorithms.PerSecond(1))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, redisReadTimeout)
	defer cancel()
	_, err = store.Take(ctx, s, p, "start", 0) // looks, and writes nothing
	switch {
	case errors.Is(err, cellstore.ErrNoModule):
		return nil, fmt.Errorf("-cell: %w", err)
	case err != nil:
		logger.Warn("redis-cell is away", "error", err)
	}
	return s, nil
}
