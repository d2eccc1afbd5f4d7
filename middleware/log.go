package middleware

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weirgo/weir/keyfunc"
)

// failureLog logs failures, at most one a second: a store that is away fails
// every request, and the log must not become the next outage.
type failureLog struct {
	logger *slog.Logger
	next   atomic.Int64 // Unix nanoseconds before which nothing is logged
	kept   atomic.Int64 // how many were not
}

// report logs err unless it is the client's doing: no key, or gone.
func (l *failureLog) report(ctx context.Context, err error) {
	if errors.Is(err, keyfunc.ErrNoKey) || ctx.Err() != nil {
		return
	}
	now, next := time.Now().UnixNano(), l.next.Load()
	if now < next || !l.next.CompareAndSwap(next, now+int64(time.Second)) {
		l.kept.Add(1)
		return
	}
	logger := l.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, slog.LevelError, "rate limit could not be decided",
		slog.Any("error", err), slog.Int64("unlogged", l.kept.Swap(0)))
}
