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
	logger  *slog.Logger
	message string
	start   time.Time    // times count from here, so that no step of the wall clock matters
	next    atomic.Int64 // the time in ns before which nothing is logged
	kept    atomic.Int64 // how many were not
}

func newFailureLog(logger *slog.Logger, message string) *failureLog {
	return &failureLog{logger: logger, message: message, start: time.Now()}
}

// report logs err, unless the client is gone. That it sent no key is its own
// doing, most of the time. A deadline is not: that is the server's.
func (l *failureLog) report(ctx context.Context, err error) {
	logger := l.to()
	switch {
	case errors.Is(err, keyfunc.ErrNoKey):
		logger.LogAttrs(ctx, slog.LevelDebug, "request without a key", slog.Any("error", err))
		return
	case errors.Is(err, ErrBlocked):
		logger.LogAttrs(ctx, slog.LevelDebug, "request blocked")
		return
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	now, next := int64(time.Since(l.start)), l.next.Load()
	if now < next || !l.next.CompareAndSwap(next, now+int64(time.Second)) {
		l.kept.Add(1)
		return
	}
	logger.LogAttrs(ctx, slog.LevelError, l.message,
		slog.Any("error", err), slog.Int64("unlogged", l.kept.Swap(0)))
}

// to is the logger, which is the default one of the moment where none was given.
func (l *failureLog) to() *slog.Logger {
	if l.logger == nil {
		return slog.Default()
	}
	return l.logger
}
