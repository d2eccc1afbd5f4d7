package redisstore

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/weirgo/weir/internal/twin"
)

var (
	//go:embed single.lua
	singleLua string
	//go:embed driver.lua
	driverLua string
)

// script is a text that Redis knows by its SHA-1.
type script struct {
	body string
	sha  string
}

func newScript(body string) *script {
	sum := sha1.Sum([]byte(body))
	return &script{body, hex.EncodeToString(sum[:])}
}

// foreign is the error for a value that is no state of the algorithm. It does
// not name the key, which may be personal data.
const foreign = `'WEIRSTATE a key holds something else than a state of its policy'`

// clock is where a script has its time from, and how that is written.
type clock struct {
	read  string // sets now
	text  string // now as digits
	phase string // the microseconds of now that TTLs, in whole ms of the server's clock, leave out
	first int    // of ARGV, after the clock
}

var (
	serverClock = clock{"local time = redis.call('TIME')\nlocal now = time[1] * 1000000 + time[2]", "time[1] .. string.sub('00000' .. time[2], -6)", "now % 1000", 1}
	callerClock = clock{"local now = tonumber(ARGV[1])", "ARGV[1]", "0", 2}
)

// singleScript makes one charge under one algorithm. one is for a cost of 1,
// which then needs no arguments.
func singleScript(t twin.Twin, c clock, one bool) *script {
	first, cost := c.first, "1, 0"
	if !one {
		cost = fmt.Sprintf("%s, %s", number(first), number(first+1))
		first += 2
	}
	names, values := []string{"cost", "age"}, []string{cost}
	for i := range t.Params {
		names, values = append(names, fmt.Sprintf("p%d", i+1)), append(values, number(first+i))
	}
	var state, next []string
	for i := range t.Words {
		state, next = append(state, fmt.Sprintf("s%d + 0", i+1)), append(next, digits(fmt.Sprintf("n%d", i+1), c))
	}
	return newScript(strings.NewReplacer(
		"${clock}", c.read,
		"${state}", twin.Names("s", t.Words),
		"${pattern}", pattern(t),
		"${foreign}", foreign,
		"${numbers}", strings.Join(state, ", "),
		"${inputs}", strings.Join(names, ", ")+" = "+strings.Join(values, ", "),
		"${next}", twin.Names("n", t.Words),
		"${twin}", t.Body,
		"${phase}", c.phase,
		"${value}", strings.Join(next, " .. ' ' .. "),
	).Replace(singleLua))
}

// number is an argument as a number: arithmetic makes one of its digits.
func number(arg int) string { return fmt.Sprintf("ARGV[%d] + 0", arg) }

// digits is a word as text. Lua writes numbers with 14 digits, and now, the only
// longer one in most states, is at hand as text.
func digits(word string, c clock) string {
	return fmt.Sprintf("(%[1]s == now and %[2]s or %[1]s < 1e14 and %[1]s > -1e14 and %[1]s or string.format('%%.0f', %[1]s))", word, c.text)
}

// groupScript decides a group of charges under any of the algorithms.
func groupScript(ts []twin.Twin, c clock) *script {
	var twins strings.Builder
	for _, t := range ts {
		fmt.Fprintf(&twins, "\n{params = %d, words = %d, inputs = %d, pattern = '%s', decide = %s},", t.Params, t.Words, 3+t.Params+t.Words, pattern(t), t.Function())
	}
	return newScript(strings.NewReplacer(
		"${clock}", c.read,
		"${twins}", twins.String(),
		"${first}", fmt.Sprint(c.first),
		"${foreign}", foreign,
		"${phase}", c.phase,
	).Replace(driverLua))
}

// pattern matches the words of a state.
func pattern(t twin.Twin) string {
	return "^" + strings.TrimSuffix(strings.Repeat(`(-?%d+) `, t.Words), " ") + "$"
}
