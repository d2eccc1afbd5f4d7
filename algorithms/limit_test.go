package algorithms_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
)

func TestLimits(t *testing.T) {
	for got, want := range map[algorithms.Limit]algorithms.Limit{
		algorithms.PerSecond(5):                {Count: 5, Period: time.Second},
		algorithms.PerMinute(30):               {Count: 30, Period: time.Minute},
		algorithms.PerHour(7):                  {Count: 7, Period: time.Hour},
		algorithms.PerDay(1).WithBurst(3):      {Count: 1, Period: 24 * time.Hour, Burst: 3},
		algorithms.PerMinute(30).WithBurst(15): {Count: 30, Period: time.Minute, Burst: 15},
	} {
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]algorithms.Limit{
		"30/1m":                    algorithms.PerMinute(30),
		"30/m":                     algorithms.PerMinute(30),
		"30/60s":                   algorithms.PerMinute(30),
		"30/1m0s":                  algorithms.PerMinute(30),
		"30/1m burst 15":           algorithms.PerMinute(30).WithBurst(15),
		"  30/1m   burst\t15 ":     algorithms.PerMinute(30).WithBurst(15),
		"5/s":                      algorithms.PerSecond(5),
		"7/h":                      algorithms.PerHour(7),
		"1/d":                      algorithms.PerDay(1),
		"10000000/30d":             {Count: 10_000_000, Period: 30 * 24 * time.Hour},
		"3/1h30m":                  {Count: 3, Period: 90 * time.Minute},
		"3/1.5s":                   {Count: 3, Period: 1500 * time.Millisecond},
		"3/.5s":                    {Count: 3, Period: 500 * time.Millisecond},
		"3/+5s":                    {Count: 3, Period: 5 * time.Second},
		"1000/250ms":               {Count: 1000, Period: 250 * time.Millisecond},
		"1/us":                     {Count: 1, Period: time.Microsecond},
		"9007199254740992/106751d": {Count: 1 << 53, Period: 106_751 * 24 * time.Hour},
	} {
		got, err := algorithms.ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
		if again, err := algorithms.ParseLimit(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, and that is read as %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"30/1m":        algorithms.PerMinute(30).String(),
		"5/1s":         algorithms.PerSecond(5).String(),
		"1/1d":         algorithms.PerDay(1).String(),
		"3/1h30m":      algorithms.Limit{Count: 3, Period: 90 * time.Minute}.String(),
		"3/1h0m1s":     algorithms.Limit{Count: 3, Period: time.Hour + time.Second}.String(),
		"3/10m":        algorithms.Limit{Count: 3, Period: 10 * time.Minute}.String(),
		"3/1m burst 0": algorithms.PerMinute(3).WithBurst(0).String(),
	} {
		if text != want {
			t.Errorf("%q is written, want %q", want, text)
		}
	}
	for _, text := range []string{"3/10s", "3/30s", "7/1h", "3/100ms", "2/1m30s", "2/20h", "2/1h10m"} {
		if l, err := algorithms.ParseLimit(text); err != nil || l.String() != text {
			t.Errorf("%q: %v, %v", text, l, err)
		}
	}
}

func TestParseLimitMistakes(t *testing.T) {
	for _, text := range []string{
		"", "30", "/1m", "30/", "30/1m burst", "30/1m burst 15 x", "30/1m bust 15", "30 / 1m", "x/1m", "30/x", "1.5/1m", "30/1",
		"30/1m burst x", "30/1m burst 1.5", "30/1w", "1e3/1s", "0x10/1s", "30/1m burst 99999999999999999999",
		"99999999999999999999/1s", "0/1s", "-1/1s", "5/0s", "5/-1s", "5/-1d", "5/0d", "5/1ns", "5/1.5us", "5/999999999d", "5/106752d", "5/26687998d", "5/1m burst 0", "5/1m burst -1",
		"9007199254740993/1s",
	} {
		l, err := algorithms.ParseLimit(text)
		var mistake *algorithms.FieldError
		if l != (algorithms.Limit{}) || !errors.As(err, &mistake) || mistake.Reason == "" || !strings.HasPrefix(mistake.Field, "Limit") {
			t.Errorf("%q: %+v, %v", text, l, err)
		}
	}
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"30/1m burst 15", "5/s", "1/d", "3/1h0m1s", "9/-1s", "/", "1/1h burst 0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := algorithms.ParseLimit(s)
		if err != nil {
			if l != (algorithms.Limit{}) {
				t.Errorf("%q: %+v with %v", s, l, err)
			}
			return
		}
		if l.Count < 1 || l.Period < 1 || l.Burst < 0 {
			t.Errorf("%q is read as %+v", s, l)
		}
		if again, err := algorithms.ParseLimit(l.String()); err != nil || again != l {
			t.Errorf("%q is %+v, written as %q, and that is %+v, %v", s, l, l, again, err)
		}
	})
}

// All mistakes come back at once, each with field, value and reason.
func TestNewPolicyMistakes(t *testing.T) {
	type want map[string]any // field: value
	var noAlgorithm *nilAlgorithm
	for name, c := range map[string]struct {
		policy string
		algo   algorithms.Algorithm
		limit  algorithms.Limit
		want   want
	}{
		"all":                {"a b", nil, algorithms.Limit{Burst: -3}, want{"Policy.Name": "a b", "Policy.Algorithm": nil, "Limit.Count": int64(0), "Limit.Period": time.Duration(0), "Limit.Burst": int64(-3)}},
		"nil pointer":        {"a", noAlgorithm, algorithms.PerSecond(1), want{"Policy.Algorithm": nil}},
		"its name":           {"a", named("x/y"), algorithms.PerSecond(1), want{"Policy.Algorithm.Name": "x/y"}},
		"empty":              {"", algorithms.GCRA{}, algorithms.PerSecond(1), want{"Policy.Name": ""}},
		"too long":           {strings.Repeat("a", 65), algorithms.GCRA{}, algorithms.PerSecond(1), want{"Policy.Name": strings.Repeat("a", 65)}},
		"colon":              {"a:b", algorithms.GCRA{}, algorithms.PerSecond(1), want{"Policy.Name": "a:b"}},
		"unicode":            {"größe", algorithms.GCRA{}, algorithms.PerSecond(1), want{"Policy.Name": "größe"}},
		"burst 0":            {"a", algorithms.GCRA{}, algorithms.PerSecond(1).WithBurst(0), want{"Limit.Burst": 0}},
		"nanoseconds":        {"a", algorithms.GCRA{}, algorithms.Limit{Count: 1, Period: 1500}, want{"Limit.Period": time.Duration(1500)}},
		"too large":          {"a", algorithms.GCRA{}, algorithms.Limit{Count: math.MaxInt64, Period: -1, Burst: math.MaxInt64}, want{"Limit.Count": int64(math.MaxInt64), "Limit.Period": time.Duration(-1), "Limit.Burst": int64(math.MaxInt64)}},
		"too large together": {"a", algorithms.GCRA{}, algorithms.Limit{Count: 1, Period: time.Second + 1000, Burst: 1 << 50}, want{"Limit": "1/1.000001s burst 1125899906842624"}},
	} {
		p, err := algorithms.NewPolicy(c.policy, c.algo, c.limit)
		if p != nil || err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		got := map[string]any{}
		for _, e := range flatten(err) {
			if e.Reason == "" || !strings.Contains(e.Error(), e.Field) {
				t.Errorf("%s: %q says too little", name, e)
			}
			got[e.Field] = e.Value
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		for field, value := range c.want {
			if got[field] != value {
				t.Errorf("%s: %s is %v, want %v", name, field, got[field], value)
			}
		}
	}
}

func flatten(err error) (all []*algorithms.FieldError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	var mistake *algorithms.FieldError
	if errors.As(err, &mistake) {
		all = append(all, mistake)
	}
	return all
}

type nilAlgorithm struct{ algorithms.GCRA }

type named string

func (n named) Name() string { return string(n) }

func (named) Params(l algorithms.Limit) ([]int64, error) { return algorithms.GCRA{}.Params(l) }

func (named) Decide(dst, s algorithms.State, now int64, p []int64, cost, age int64) (algorithms.State, algorithms.Result) {
	return algorithms.GCRA{}.Decide(dst, s, now, p, cost, age)
}

func TestPolicy(t *testing.T) {
	l := algorithms.PerMinute(30).WithBurst(16)
	p, err := algorithms.NewPolicy("per-user_v1.2", algorithms.GCRA{}, l)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != "per-user_v1.2" || p.ID() != "per-user_v1.2:gcra" || p.Limit() != l || p.Algorithm() != (algorithms.GCRA{}) {
		t.Errorf("%v %v %v %v", p.Name(), p.ID(), p.Limit(), p.Algorithm())
	}
	if _, r := p.Decide(nil, nil, 0, 1, 0); r.Cell() != [5]int64{0, 16, 15, -1, 2} {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{strings.Repeat("a", algorithms.MaxName), "AZ", "az", "09", "-", "_", "."} {
		if p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, l); err != nil || p.Name() != name {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCell(t *testing.T) {
	for _, c := range []struct {
		r    algorithms.Result
		want [5]int64
	}{
		{algorithms.Result{}, [5]int64{0, 0, 0, -1, 0}},
		{algorithms.Result{Limit: 5, Remaining: 3, RetryAfter: time.Minute, ResetAfter: 999_999 * time.Nanosecond}, [5]int64{0, 5, 3, -1, 0}},
		{algorithms.Result{Limited: true, Limit: 5, RetryAfter: time.Millisecond, ResetAfter: time.Second + time.Millisecond}, [5]int64{1, 5, 0, 1, 2}},
		{algorithms.Result{Limited: true, Limit: 5, RetryAfter: 999 * time.Microsecond, ResetAfter: 2 * time.Second}, [5]int64{1, 5, 0, 0, 2}},
		{algorithms.Result{Limited: true, Limit: 5, Remaining: 5, RetryAfter: algorithms.Never}, [5]int64{1, 5, 5, -1, 0}},
	} {
		if got := c.r.Cell(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.r, got, c.want)
		}
	}
}

func TestFieldError(t *testing.T) {
	for e, want := range map[*algorithms.FieldError]string{
		{Field: "Limit.Count", Value: 0, Reason: "must be at least 1"}: "weir: Limit.Count = 0: must be at least 1",
		{Field: "Policy.Name", Value: "", Reason: "is missing"}:        `weir: Policy.Name = "": is missing`,
	} {
		if e.Error() != want {
			t.Errorf("%q, want %q", e, want)
		}
	}
}
