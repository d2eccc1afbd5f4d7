package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
)

// config is what a server is made of. All fields but cell, trust and region are
// needed.
type config struct {
	store   store.Store
	cell    store.Store // of the limits by address; nil: one decision with the others
	codes   *codes
	trust   keyfunc.Trust // whose word is taken for a client's address
	region  string        // of phone numbers without a country code
	sender  Sender
	logger  *slog.Logger
	baseURL string // where clients reach the server, for the help
}

// server sends codes and checks them.
type server struct {
	config
	limitCodes    func(http.Handler) http.Handler
	limitVerifies func(http.Handler) http.Handler
}

// newServer makes a server. It starts nothing.
func newServer(c config) (*server, error) {
	s := &server{config: c}
	var errCodes, errVerifies error
	s.limitCodes, errCodes = s.limits(routeCodes)
	s.limitVerifies, errVerifies = s.limits(routeVerifications)
	return s, errors.Join(errCodes, errVerifies)
}

// limits are the limits of a route, and the ban, as one decision. A cell decides
// one charge at a time: with one the limit by address stands before the others, is
// charged also where one of those refuses, and nobody is banned.
func (s *server) limits(route string) (func(http.Handler) http.Handler, error) {
	address := keyfunc.IP(s.trust)
	if s.cell == nil {
		ban, err := ban.Policy("ban")
		if err != nil {
			return nil, err
		}
		return s.limit(route, middleware.Config{Store: s.store, Ban: ban, BanKey: address},
			map[subject]keyfunc.Func{perPhone: phoneKey, perAddress: address})
	}
	before, errBefore := s.limit(route, middleware.Config{Store: s.cell}, map[subject]keyfunc.Func{perAddress: address})
	after, errAfter := s.limit(route, middleware.Config{Store: s.store}, map[subject]keyfunc.Func{perPhone: phoneKey})
	return func(next http.Handler) http.Handler { return before(after(next)) }, errors.Join(errBefore, errAfter)
}

// limit is a middleware of those rules of a route whose subjects have a key here.
func (s *server) limit(route string, c middleware.Config, keys map[subject]keyfunc.Func) (func(http.Handler) http.Handler, error) {
	var err error
	if c.Rules, err = rulesFor(route, keys); err != nil {
		return nil, err
	}
	c.Denied, c.Failed, c.Logger = denied, s.failed, s.logger
	m, err := middleware.New(c)
	return m.Handler, err
}

// handler serves all routes.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(routeCodes, decode(s.region, s.limitCodes(http.HandlerFunc(s.sendCode)), "phone"))
	mux.Handle(routeVerifications, decode(s.region, s.limitVerifies(http.HandlerFunc(s.verify)), "phone", "code"))
	mux.HandleFunc("GET /{$}", s.index)
	// A page of another site must not have its visitors' browsers ask for codes.
	return http.NewCrossOriginProtection().Handler(mux)
}

// sendCode sends a new code to a phone.
func (s *server) sendCode(w http.ResponseWriter, r *http.Request) {
	in, err := inputOf(r)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	code, err := s.codes.issue(r.Context(), in.phone)
	if err != nil {
		s.codesFailed(w, r, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), sendTimeout)
	defer cancel()
	if err := s.sender.Send(ctx, in.phone, code); err != nil {
		// The code stays valid: the message may have left all the same.
		s.logger.Error("code not sent", "phone", maskPhone(in.phone), "error", redact(err, in.phone, code))
		status := http.StatusBadGateway
		if errors.Is(err, errUnsent) {
			status = statusUnsent
		}
		writeProblem(w, status, "The code could not be sent.")
		return
	}
	writeJSON(w, http.StatusAccepted, map[string]any{"status": "sent", "expires_in": int(codeLife.Seconds())})
}

// verify checks a code. A phone that never got one has the same answer as a
// code that is wrong, used or too old.
func (s *server) verify(w http.ResponseWriter, r *http.Request) {
	in, err := inputOf(r)
	if err != nil {
		s.failed(w, r, err)
		return
	}
	valid, err := s.codes.redeem(r.Context(), in.phone, in.code)
	if err != nil {
		s.codesFailed(w, r, err)
		return
	}
	if !valid {
		writeProblem(w, http.StatusUnprocessableEntity, "The code is not valid.")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": "verified"})
}

// denied answers a refusal, in the form of all errors here.
func denied(w http.ResponseWriter, _ *http.Request, _ middleware.Decision) {
	writeProblem(w, http.StatusTooManyRequests, "Try again in "+w.Header().Get("Retry-After")+" s.")
}

// failed answers what the limits could not decide, or decided without a phone.
func (s *server) failed(w http.ResponseWriter, r *http.Request, err error) {
	if bad := (*inputError)(nil); errors.As(err, &bad) {
		writeProblem(w, bad.status, bad.detail)
		return
	}
	middleware.DefaultFailed(w, r, err)
}

// codesFailed answers where the codes are away.
func (s *server) codesFailed(w http.ResponseWriter, r *http.Request, err error) {
	s.logger.Error("codes away", "error", err)
	middleware.DefaultFailed(w, r, err)
}

// redact takes out of a sender's error what no log may hold.
func redact(err error, phone, code string) string {
	return strings.NewReplacer(phone, maskPhone(phone), strings.TrimPrefix(phone, "+"), maskPhone(phone), code, "***").Replace(err.Error())
}

// index explains the server.
func (s *server) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, s.help()) // fails only if the client is gone
}

// help says what the server limits and how to try it.
func (s *server) help() string {
	const curl = "  curl -i '%s/api/%s' -H 'Content-Type: application/json' -d '%s'\n"
	return fmt.Sprintf("sms-verify on %s\n\nLimits:\n", s.baseURL) + limitsText(s.cell == nil) +
		"\nGet a code (it is printed where the server runs):\n" +
		fmt.Sprintf(curl, s.baseURL, "codes", `{"phone":"+12025550142"}`) +
		"\nCheck it:\n" +
		fmt.Sprintf(curl, s.baseURL, "verifications", `{"phone":"+12025550142","code":"000000"}`) + "\n"
}
