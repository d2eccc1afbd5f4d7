package redisstore

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/weirgo/weir/internal/goredis"
	"github.com/weirgo/weir/internal/twin"
)

var (
	//go:embed single.lua
	singleLua string
	//go:embed driver.lua
	driverLua string
	//go:embed log.lua
	logLua string
)

// foreign is the error for a value that is no state of the algorithm. It does
// not name the key, which may be personal data.
const foreign = `'WEIRSTATE a key holds something else than a state of its policy'`

// staleLogs writes the logs in which nothing counts, before all else. While a slot
// is on its way to another node, a script can't make a key again that it has
// deleted: that error must come before anything of the group is written.
const staleLogs = `for i = 1, #keys do
  if made[i] and found[i] and type(value[i]) == 'table' and value[i].used == 0 then
    keep(keys[i], value[i], found[i], reply[5 * i])
    made[i] = false
  end
end
`

// clock is where a script has its time from.
type clock struct {
	read  string // sets now, and text to its digits
	phase string // the microseconds of now that TTLs, in whole ms of the server's clock, leave out
	first int    // of ARGV, after the clock
}

var (
	serverClock = clock{`local time = call('TIME')
local seconds, micros = time[1], time[2]
local now = seconds * 1000000 + micros
if #micros < 6 then micros = string.sub('00000' .. micros, -6) end
local text = seconds .. micros`, "now % 1000", 1}
	callerClock = clock{"local now, text = argv[1] + 0, argv[1]", "0", 2}
)

// singleScript makes one charge under one algorithm. one is for a cost of 1,
// which then needs no arguments. Neither do params at the end that are 1, such as
// a tick of 1 µs.
func singleScript(t twin.Twin, c clock, one bool) *goredis.Script {
	first, cost := c.first, "1, 0"
	if !one {
		cost = fmt.Sprintf("argv[%d] + 0, argv[%d] + 0", first, first+1)
		first += 2
	}
	return goredis.NewScript(fill(singleLua, t, c,
		"${inputs}", assign("cost, age", cost, t, func(i int) string { return fmt.Sprintf("(argv[%d] or 1) + 0", first+i) })))
}

// groupScript decides a group of up to size charges under any of the algorithms.
func groupScript(ks []*known, size int, c clock) *goredis.Script {
	row := strings.TrimSuffix(strings.Repeat("nil, ", size), ", ")
	var twins, widths []string
	isLog := ""
	for i, k := range ks {
		widths = append(widths, strconv.Itoa(k.Params))
		if k.log {
			twins = append(twins, "log")
			isLog = fmt.Sprintf("argv[arg] + 0 == %d", i+1)
		} else {
			twins = append(twins, groupTwin(k.Twin, c))
		}
	}
	more := []string{
		"${twins}", strings.Join(twins, ", "),
		"${widths}", strings.Join(widths, ", "),
		"${row}", row,
		"${reply}", strings.TrimSuffix(strings.Repeat(row+", ", 5), ", "),
		"${first}", strconv.Itoa(c.first),
	}
	// A group without a log is spared what only logs need.
	const read, write = "call('GET', keys[i])", "call('PSETEX', keys[i], math.ceil(reset / 1000), value[i])"
	if isLog == "" {
		more = append(more, "${log}", "", "${key}", "", "${stale}", "", "${read}", read, "${write}", write, "${delete}", "DEL")
	} else {
		more = append(more, "${log}", logLua, "${key}", ", keys[i]", "${stale}", staleLogs,
			"${read}", fmt.Sprintf("nil\n  if %s then found[i] = call('ZCARD', keys[i]) else found[i] = %s end\n  if found[i] == 0 then found[i] = nil end", isLog, read),
			"${write}", fmt.Sprintf("if type(value[i]) == 'table' then keep(keys[i], value[i], found[i], reset) else %s end", write),
			"${delete}", "UNLINK")
	}
	return goredis.NewScript(fill(driverLua, twin.Twin{}, c, more...))
}

// groupTwin is a twin as driver.lua calls it: a function of cost, age, where its
// params begin, and the text of the state. It returns the answers and the text
// of the next state, or nothing where that of the state is none.
func groupTwin(t twin.Twin, c clock) string {
	const function = `function(cost, age, arg, raw)
local ${state}, ${words}
if raw then
  ${words} = string.match(raw, '${pattern}')
  if not w1 then return end
  ${state} = ${numbers}
end
${inputs}
local limited, limit, remaining, retry, reset, ${next}
do
${twin}
end
return limited, limit, remaining, retry, reset, n1 and ${value}
end`
	inputs := ""
	if t.Params > 0 {
		inputs = "local " + assign("", "", t, func(i int) string { return fmt.Sprintf("argv[arg + %d] + 0", i+1) })
	}
	return fill(function, t, c, "${inputs}", inputs)
}

// assign is "cost, age, p1, p2 = …": some names and values, and the params.
func assign(names, values string, t twin.Twin, param func(i int) string) string {
	ns, vs := []string{}, []string{}
	if names != "" {
		ns, vs = append(ns, names), append(vs, values)
	}
	for i := range t.Params {
		ns, vs = append(ns, fmt.Sprintf("p%d", i+1)), append(vs, param(i))
	}
	return strings.Join(ns, ", ") + " = " + strings.Join(vs, ", ")
}

// fill fills in what a twin and a clock stand for in a script, and more.
func fill(script string, t twin.Twin, c clock, more ...string) string {
	var numbers, value []string
	for i := range t.Words {
		numbers = append(numbers, fmt.Sprintf("w%d + 0", i+1))
		value = append(value, digits(i+1))
	}
	return strings.NewReplacer(append(more,
		"${clock}", c.read,
		"${phase}", c.phase,
		"${state}", twin.Names("s", t.Words),
		"${words}", twin.Names("w", t.Words),
		"${pattern}", "^"+strings.TrimSuffix(strings.Repeat(`(-?%d+) `, t.Words), " ")+"$",
		"${foreign}", foreign,
		"${numbers}", strings.Join(numbers, ", "),
		"${next}", twin.Names("n", t.Words),
		"${twin}", t.Body,
		"${decision}", t.Decision(),
		"${value}", strings.Join(value, " .. ' ' .. "),
	)...).Replace(script)
}

// digits is word n of the next state as text. Making one costs a server as much as
// a good part of the decision, so what is at hand is taken: the text of the time,
// and of the word as it was. Lua itself writes numbers with 14 digits.
func digits(n int) string {
	return fmt.Sprintf("(n%[1]d == now and text or n%[1]d == s%[1]d and w%[1]d or n%[1]d < 1e14 and n%[1]d > -1e14 and n%[1]d or string.format('%%.0f', n%[1]d))", n)
}
