package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// sendTimeout is how long a Sender is waited for.
const sendTimeout = 5 * time.Second

// Sender delivers codes. It is safe for concurrent use.
type Sender interface {
	// Send brings code to phone, which is in E.164. After an error nobody knows
	// whether the message arrived, unless the error wraps [errUnsent]: then none left,
	// and the phone does not pay for it.
	Send(ctx context.Context, phone, code string) error
}

// errUnsent says that a message has surely not left, as where the provider can't be
// reached or has refused it.
var errUnsent = errors.New("the message was not sent")

// consoleSender prints codes in place of sending them, so that the example can
// be tried without a provider.
type consoleSender struct{ w io.Writer }

// Send prints one line. It is the only place where a code can be read.
func (s consoleSender) Send(_ context.Context, phone, code string) error {
	_, err := fmt.Fprintf(s.w, "text message to %s: your code is %s\n", maskPhone(phone), code)
	return err
}
