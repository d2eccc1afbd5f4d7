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

// report logs err, unless the client is gone. That it sent no key is its own
// doing, most of the time.
func (l *failureLog) report(ctx context.Context, err error) {
	logger := l.logger
	if logger == nil {
		logger = slog.Default()
	}
	if errors.Is(err, keyfunc.ErrNoKey) {
		logger.LogAttrs(ctx, slog.LevelDebug, "request without a key", slog.Any("error", err))
		return
	}
	if ctx.Err() != nil {
		return
	}
	now, next := time.Now().UnixNano(), l.next.Load()
	if now < next || !l.next.CompareAndSwap(next, now+int64(time.Second)) {
		l.kept.Add(1)
		return
	}
	logger.LogAttrs(ctx, slog.LevelError, "rate limit could not be decided",
		slog.Any("error", err), slog.Int64("unlogged", l.kept.Swap(0)))
}
