// Package goredis is what the stores on go-redis share: which clients serve, and
// what their errors mean.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client sends commands.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Check reports what is wrong with a client: that there is none, that it only
// collects commands, or that its time-outs are its own. sharded says whether it
// spreads keys over servers, as far as that is known of it.
func Check(client Client, bad func(field string, value any, reason string)) (sharded bool) {
	heedsContext := true
	switch client := client.(type) {
	case nil:
		bad("client", nil, "is missing")
	case redis.Pipeliner:
		bad("client", fmt.Sprintf("%T", client), "must not be a pipeline: it only collects commands, and a decision is wanted at once")
	case *redis.Client:
		heedsContext = client == nil || client.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		sharded = true
		heedsContext = client == nil || client.Options().ContextTimeoutEnabled
	case *redis.Ring:
		sharded = true
		heedsContext = client == nil || client.Options().ContextTimeoutEnabled
	}
	if v := reflect.ValueOf(client); v.Kind() == reflect.Pointer && v.IsNil() {
		bad("client", nil, "is missing")
	}
	if !heedsContext {
		bad("client", "ContextTimeoutEnabled: false", "must be true in the client's options, or the deadlines of requests are ignored")
	}
	return sharded
}

// Send sends a command. A client that queues it has no error of its own.
func Send(ctx context.Context, c Client, cmd redis.Cmder) error {
	if err := c.Process(ctx, cmd); err != nil {
		return err
	}
	return cmd.Err()
}

// errUnknown stands for what a server says of a command that it does not know:
// that has the key in it, which may be personal data.
var errUnknown = errors.New("ERR unknown command")

// Failure is what a store returns for an error of the client. go-redis reports a
// deadline of ctx as a time-out of the network.
func Failure(ctx context.Context, err error) error {
	if redis.HasErrorPrefix(err, "unknown command") {
		err = errUnknown
	}
	ctxErr := ctx.Err()
	if deadline, ok := ctx.Deadline(); ok && ctxErr == nil && !time.Now().Before(deadline) {
		ctxErr = context.DeadlineExceeded // the connection's timer, set to the same time, was first
	}
	if ctxErr != nil && !errors.Is(err, ctxErr) {
		return fmt.Errorf("weir: redis: %w: %w", ctxErr, err)
	}
	return fmt.Errorf("weir: redis: %w", err)
}
