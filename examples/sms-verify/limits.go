package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
)

// The routes that have limits.
const (
	routeCodes         = "POST /api/codes"
	routeVerifications = "POST /api/verifications"
)

// subject is who or what a limit counts.
type subject string

const (
	perPhone   subject = "phone"
	perAddress subject = "address"
)

// limitRow is a row of the table of limits.
type limitRow struct {
	route  string
	policy string
	limit  algorithms.Limit
	per    subject
}

// limitTable is every limit of this server. The rows of a route are one
// decision.
//
// Phones and addresses have limits of their own: with one for both together,
// who has many addresses could flood a phone, and who has one could run through
// all the numbers there are.
var limitTable = []limitRow{
	{routeCodes, "phone-minute", algorithms.PerMinute(1), perPhone},
	{routeCodes, "phone-hour", algorithms.PerHour(5), perPhone},
	{routeCodes, "phone-day", algorithms.PerDay(10), perPhone},
	{routeCodes, "address", algorithms.PerHour(20), perAddress},

	{routeVerifications, "tries", algorithms.Limit{Count: 5, Period: 10 * time.Minute}, perPhone},
	{routeVerifications, "tries-address", algorithms.PerHour(60), perAddress},
}

// ban keeps out an address that goes on being refused, on all routes: a program,
// not somebody who can read "try again in 42 s", nor an office behind one address.
// It is by address only: a phone's owner is not who asks for codes to it.
var ban = algorithms.Ban{Strikes: 100, Within: 10 * time.Minute, For: time.Hour}

// rulesFor are the rules of a route for those subjects that have a key here.
func rulesFor(route string, keys map[subject]keyfunc.Func) ([]middleware.Rule, error) {
	var rules []middleware.Rule
	var errs []error
	for _, row := range limitTable {
		key, ok := keys[row.per]
		if row.route != route || !ok {
			continue
		}
		policy, err := algorithms.NewPolicy(row.policy, algorithms.GCRA{}, row.limit)
		if err != nil {
			errs = append(errs, fmt.Errorf("limit %s: %w", row.policy, err))
			continue
		}
		rule := middleware.Rule{Policy: policy, Key: key}
		if route == routeCodes && row.per == perPhone {
			rule.Refund = unsent
		}
		rules = append(rules, rule)
	}
	return rules, errors.Join(errs...)
}

// statusUnsent answers where surely no message has left.
const statusUnsent = http.StatusServiceUnavailable

// unsent gives a phone back what it paid for a message that has not left. An address
// keeps its charge, or failures would be free.
func unsent(status int) bool { return status == statusUnsent }

// phoneKey is the phone number that the request was decoded to: the same value
// that the handler sends to. Where there is none the error says why, for
// [server.failed], and the middleware charges the address alone.
func phoneKey(r *http.Request) (string, error) {
	in, err := inputOf(r)
	if err != nil {
		return "", err
	}
	return in.phone, nil
}

// limitsText is the table, one limit a line, and the ban if there is one.
func limitsText(bans bool) string {
	var b strings.Builder
	for _, row := range limitTable {
		fmt.Fprintf(&b, "  %-23s  %-7s per %-7s  (%s)\n", row.route, row.limit, row.per, row.policy)
	}
	if !bans {
		return b.String()
	}
	fmt.Fprintf(&b, "  %-23s  after %d refusals in %v an address is banned for %v\n", "all of these", ban.Strikes, ban.Within, ban.For)
	return b.String()
}
