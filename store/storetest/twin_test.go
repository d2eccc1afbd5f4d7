package storetest

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
)

func miniEval(t *testing.T) Eval {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return func(script string, args []string) (string, error) {
		values := make([]any, len(args))
		for i, a := range args {
			values[i] = a
		}
		return client.Eval(t.Context(), script, nil, values...).Text()
	}
}

// off is GCRA with a script that is off by something.
type off struct {
	algorithms.GCRA
	lua string
}

func (o off) Lua() string { return o.lua }

// Each line of the twin that decides something is broken, and Twin must see it.
func TestTwinSeesMistakes(t *testing.T) {
	good := algorithms.GCRA{}.Lua()
	for _, m := range []struct{ from, to string }{
		{"if rest > 0 then ticks = ticks + 1 end\n  local us", "local us"},
		{"if us > 9007199254740992 then return 9007199254740992 end", ""},
		{"if s3 ~= unit then", "if false then"},
		{"if r > 0 then q = q + 1 end", ""},
		{"if level > full then level = full end", ""},
		{"if at - now > wait(full, 0) then level, at = 0, now end", ""},
		{"at - now > wait(full, 0)", "at - now >= wait(full, 0)"},
		{"level, at = level - ticks * drain, now - rest", "level, at = level - ticks * drain, now"},
		{"if ticks * drain >= level then", "if ticks * drain > level + drain then"},
		{"limited, retry = true, -1", "limited, retry = true, 0"},
		{"if need > full - level then", "if need >= full - level then"},
		{"over = after - (full - need)", "over = after - full"},
		{"over = level - (full - unit)", "over = level - full"},
		{"if back > burst then back = burst end", ""},
		{"if rest > 0 then ticks = ticks + 1 end\n  if ticks * drain >= back", "if ticks * drain >= back"},
		{"back = back - ticks * drain", "back = back"},
		{"if back > level then back = level end", ""},
		{"retry = wait(over, at - now)", "retry = wait(over, 0)"},
		{"reset = wait(after, at - now)", "reset = wait(after, 0)"},
		{"n1, n2, n3 = after, at, unit", "n1, n2, n3 = after, now, unit"},
		{"(full - after) % unit", "0"},
	} {
		if strings.Count(good, m.from) != 1 {
			t.Errorf("%d times in the twin: %q", strings.Count(good, m.from), m.from)
			continue
		}
		lua := strings.Replace(good, m.from, m.to, 1)
		r := record(func(r reporter) { checkTwin(r, off{lua: lua}, miniEval(t), TwinOptions{Steps: 100_000, Seed: 42}) })
		if len(r.said) == 0 {
			t.Errorf("not seen: %q in place of %q", m.to, m.from)
		}
	}
}
