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
		{"if s3 ~= unit then", "if false then"},
		{"if r > 0 then q = q + 1 end", ""},
		{"if level > full then level = full end", ""},
		{"if drained >= level then", "if drained > level + drain then"},
		{"level, at = level - drained, now - rest", "level, at = level - drained, now"},
		{"/ tick * drain\n    if drained", "/ tick\n    if drained"},
		{"if at - now > span or at - now > 9007199254740992 then level, at = 0, now end", ""},
		{"at - now > span", "at - now >= span"},
		{"local span = ((full - rest) / drain + (rest > 0 and 1 or 0)) * tick", "local span = (full - rest) / drain * tick"},
		{"limited, retry = true, -1", "limited, retry = true, 0"},
		{"if level > room then", "if level >= room then"},
		{"over = after - room", "over = after - full"},
		{"over = level - (full - unit)", "over = level - full"},
		{"if back > burst then back = burst end", ""},
		{"if age < 0 then age = 0 end\n  local rest = age % tick", "local rest = 0"},
		{"((age - rest) / tick + (rest > 0 and 1 or 0)) * drain", "(age - rest) / tick * drain"},
		{"back = back - drained", "back = back"},
		{"if back > level then back = level end", ""},
		{"(full - after) % unit", "0"},
		{"retry = at - now + ((over - rest) / drain + (rest > 0 and 1 or 0)) * tick", "retry = ((over - rest) / drain + (rest > 0 and 1 or 0)) * tick"},
		{"retry = at - now + ((over - rest) / drain + (rest > 0 and 1 or 0)) * tick", "retry = at - now + (over - rest) / drain * tick"},
		{"reset = at - now + ((after - rest) / drain + (rest > 0 and 1 or 0)) * tick", "reset = ((after - rest) / drain + (rest > 0 and 1 or 0)) * tick"},
		{"if reset > 9007199254740992 then reset = 9007199254740992 end", ""},
		{"n1, n2, n3 = after, at, unit", "n1, n2, n3 = after, now, unit"},
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
