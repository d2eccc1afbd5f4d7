package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// Where the client is gone, what it took is given back all the same, and the store
// sees what the request's context holds.
func TestRefundWithoutClient(t *testing.T) {
	type traced struct{}
	c, p := refunding(t, serverError)
	var traces []any
	c.Store = watched{c.Store, func(ctx context.Context, _ []store.Charge) error {
		traces = append(traces, ctx.Value(traced{}))
		return nil
	}}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), traced{}, "id"))
	serve(newMiddleware(t, c).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		w.WriteHeader(503)
	})), func(r *http.Request) { *r = *r.WithContext(ctx) })
	if !slices.Equal(traces, []any{"id", "id"}) {
		t.Errorf("the store saw %v", traces)
	}
	wantLeft(t, c.Store, []*algorithms.Policy{p}, 10)
}

// watched is a store that asks first.
type watched struct {
	store.Store
	before func(context.Context, []store.Charge) error
}

func (w watched) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	if err := w.before(ctx, charges); err != nil {
		return err
	}
	return w.Store.Take(ctx, charges, results)
}

// givesBack tells whether charges are those of a refund.
func givesBack(charges []store.Charge) bool { return charges[0].Cost < 0 }

// A refund that fails is logged, the charge stays, and the answer is what it was.
// It waits no longer than a second for a store that hangs.
func TestRefundFails(t *testing.T) {
	for name, test := range map[string]struct {
		before func(context.Context, []store.Charge) error
		took   time.Duration
		log    string
	}{
		"away": {func(_ context.Context, charges []store.Charge) error {
			if givesBack(charges) {
				return errAway
			}
			return nil
		}, 0, "secret detail"},
		"hangs": {func(ctx context.Context, charges []store.Charge) error {
			if givesBack(charges) {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, time.Second, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				c, p := refunding(t, always)
				c.Store = watched{c.Store, test.before}
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				ctx, cancel := context.WithCancel(context.Background())
				m := newMiddleware(t, c)
				start := time.Now()
				w := serve(m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					cancel() // which is no reason not to log it
					w.WriteHeader(204)
				})), func(r *http.Request) { *r = *r.WithContext(ctx) })
				if took := time.Since(start); w.Code != 204 || took != test.took {
					t.Errorf("%d after %v, want 204 after %v", w.Code, took, test.took)
				}
				wantHeaders(t, w, map[string]string{"X-RateLimit-Remaining": "9"})
				got := log.String()
				if strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "could not be given back") || !strings.Contains(got, test.log) {
					t.Errorf("the log: %q", got)
				}
				wantLeft(t, c.Store, []*algorithms.Policy{p}, 9)
			})
		})
	}
}

// What can't be given back keeps no other failure from the log.
func TestRefundHidesNoFailure(t *testing.T) {
	var log bytes.Buffer
	c, _ := refunding(t, always)
	down := false
	c.Store = watched{c.Store, func(_ context.Context, charges []store.Charge) error {
		if down || givesBack(charges) {
			return errors.New("down")
		}
		return nil
	}}
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	h := newMiddleware(t, c).Handler(ok)
	serve(h)
	down = true
	serve(h)
	if got := log.String(); !strings.Contains(got, "could not be given back") || !strings.Contains(got, "could not be decided") {
		t.Errorf("the log: %q", got)
	}
}
