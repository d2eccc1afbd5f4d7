package adapters_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	"github.com/weirgo/weir/store"
)

// webSockets are libraries that take a connection over, each in its own way: one
// writes the status 101 first, and unwraps writers, the other asks the writer
// itself for the connection and writes the whole answer there.
var webSockets = map[string]struct {
	echo http.HandlerFunc // one message
	dial func(t *testing.T, server *httptest.Server) (say func(string) string, res *http.Response, err error)
}{
	"coder": {
		func(w http.ResponseWriter, r *http.Request) {
			conn, err := coder.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer conn.CloseNow()
			if kind, message, err := conn.Read(r.Context()); err == nil {
				_ = conn.Write(r.Context(), kind, message)
			}
			_ = conn.Close(coder.StatusNormalClosure, "")
		},
		func(t *testing.T, server *httptest.Server) (func(string) string, *http.Response, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			t.Cleanup(cancel)
			conn, res, err := coder.Dial(ctx, server.URL, &coder.DialOptions{HTTPClient: server.Client()})
			if err != nil {
				return nil, res, err
			}
			t.Cleanup(func() { _ = conn.CloseNow() })
			return func(message string) string {
				if err := conn.Write(ctx, coder.MessageText, []byte(message)); err != nil {
					t.Error(err)
				}
				_, answer, err := conn.Read(ctx)
				if err != nil {
					t.Error(err)
				}
				_ = conn.Close(coder.StatusNormalClosure, "")
				return string(answer)
			}, res, nil
		},
	},
	"gorilla": {
		func(w http.ResponseWriter, r *http.Request) {
			conn, err := (&gorilla.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer conn.Close()
			if kind, message, err := conn.ReadMessage(); err == nil {
				_ = conn.WriteMessage(kind, message)
			}
		},
		func(t *testing.T, server *httptest.Server) (func(string) string, *http.Response, error) {
			conn, res, err := (&gorilla.Dialer{}).DialContext(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
			if err != nil {
				return nil, res, err
			}
			t.Cleanup(func() { _ = conn.Close() })
			return func(message string) string {
				if err := conn.WriteMessage(gorilla.TextMessage, []byte(message)); err != nil {
					t.Error(err)
				}
				_, answer, err := conn.ReadMessage()
				if err != nil {
					t.Error(err)
				}
				return string(answer)
			}, res, nil
		},
	},
}

// A connection is taken over through the limiter, with the headers in the answer,
// or refused with a status before it is.
func TestWebSocket(t *testing.T) {
	for name, library := range webSockets {
		t.Run(name, func(t *testing.T) {
			eachSetup(t, func(t *testing.T, s *setup) {
				server := s.start(t, s.serve([]route{{"GET", "/", library.echo}}), (*httptest.Server).Start)
				say, res, err := library.dial(t, server)
				if err != nil {
					t.Fatal(err)
				}
				if name == "coder" { // the other writes headers of its own
					wantRateHeaders(t, res.Header, "9")
				}
				if got := say("hello"); got != "hello" {
					t.Errorf("%q came back", got)
				}
				code := 101
				if name == "gorilla" && strings.HasPrefix(s.name, "gin/") {
					code = 200 // gin does not tell
				}
				left := int64(9)
				if s.refund {
					left = 10
				}
				s.settled(t, code, left)

				if _, err := store.Take(t.Context(), s.store, s.policy, "127.0.0.1", left); err != nil {
					t.Fatal(err)
				}
				if _, res, err := library.dial(t, server); err == nil || res == nil || res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
					t.Errorf("refused: %v, %v", res, err)
				}
			})
		})
	}
}
