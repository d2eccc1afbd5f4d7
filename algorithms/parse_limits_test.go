package algorithms_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
)

func ExampleParseLimits() {
	limits, err := algorithms.ParseLimits("10/s; 100/h burst 20")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range limits {
		fmt.Println(l.Count, l.Period, l.Burst)
	}
	_, err = algorithms.ParseLimits("10/s; 0/h;")
	fmt.Println(err)
	// Output:
	// 10 1s 0
	// 100 1h0m0s 20
	// weir: Limits[1] = "0/h": count: must be at least 1; to pass everything leave the rule out, to refuse everything answer so in the handler
	// weir: Limits[2] = "": is empty; semicolons stand between limits only
}

func TestParseLimits(t *testing.T) {
	second, hour := algorithms.PerSecond(10), algorithms.PerHour(100).WithBurst(20)
	for text, want := range map[string][]algorithms.Limit{
		"10/s":                      {second},
		"10/s; 100/h burst 20":      {second, hour},
		"100/h burst 20;10/s":       {hour, second},
		"\t10/1s ;\n100/h burst 20": {second, hour},
		// Not the same: what a burst means is the algorithm's.
		"10/s; 10/s burst 10; 10/s burst 5": {second, second.WithBurst(10), second.WithBurst(5)},
	} {
		if got, err := algorithms.ParseLimits(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// All mistakes come back at once, each with its place, its text and the reason.
func TestParseLimitsMistakes(t *testing.T) {
	type mistake struct{ field, value, reason string }
	const empty = "is empty"
	for text, want := range map[string][]mistake{
		"":                 {{"Limits[0]", "", empty}},
		" \t":              {{"Limits[0]", "", empty}},
		";":                {{"Limits[0]", "", empty}, {"Limits[1]", "", empty}},
		"10/s;":            {{"Limits[1]", "", empty}},
		"10/s;; 100/h":     {{"Limits[1]", "", empty}},
		";10/s":            {{"Limits[0]", "", empty}},
		"10/s, 100/h":      {{"Limits[0]", "10/s, 100/h", "COUNT/PERIOD"}},
		"10/s; x/h ;5/day": {{"Limits[1]", "x/h", "count: "}, {"Limits[2]", "5/day", "period: "}},
		"1/s; 0/0s burst 0": {
			{"Limits[1]", "0/0s burst 0", "count: must"}, {"Limits[1]", "0/0s burst 0", "period: must"}, {"Limits[1]", "0/0s burst 0", "burst: must"},
		},
		"60/m; 1/s; 60/60s; 60/1m": {{"Limits[2]", "60/60s", "Limits[0]"}, {"Limits[3]", "60/1m", "Limits[0]"}},
		"x; x":                     {{"Limits[0]", "x", "slash"}, {"Limits[1]", "x", "slash"}},
	} {
		limits, err := algorithms.ParseLimits(text)
		got := flatten(err)
		if limits != nil || len(got) != len(want) {
			t.Errorf("%q: %v with %d mistakes, want %d: %v", text, limits, len(got), len(want), err)
			continue
		}
		for i, e := range got {
			if e.Field != want[i].field || e.Value != want[i].value || !strings.Contains(e.Reason, want[i].reason) {
				t.Errorf("%q, mistake %d: %v; want %v", text, i+1, e, want[i])
			}
		}
	}
}

func FuzzParseLimits(f *testing.F) {
	for _, s := range []string{"10/s; 100/h burst 20", "5/s", ";", "1/d;1/24h", "3/1h0m1s;9/-1s", " 1/h burst 0 ;; x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		limits, err := algorithms.ParseLimits(s)
		pieces := strings.Split(s, ";")
		if err != nil {
			mistakes := flatten(err)
			if limits != nil || len(mistakes) == 0 {
				t.Errorf("%q: %v with %v", s, limits, err)
			}
			for _, e := range mistakes {
				var i int
				if n, err := fmt.Sscanf(e.Field, "Limits[%d]", &i); n != 1 || i >= len(pieces) || e.Value != strings.TrimSpace(pieces[i]) || e.Reason == "" {
					t.Errorf("%q: %v (%v)", s, e, err)
				}
			}
			return
		}
		if len(limits) != len(pieces) {
			t.Errorf("%q is read as %v", s, limits)
		}
		var texts []string
		for i, l := range limits {
			texts = append(texts, l.String())
			if alone, err := algorithms.ParseLimit(pieces[i]); err != nil || alone != l {
				t.Errorf("%q is read as %v, alone as %v, %v", pieces[i], l, alone, err)
			}
		}
		again := strings.Join(texts, "; ")
		if got, err := algorithms.ParseLimits(again); err != nil || !slices.Equal(got, limits) {
			t.Errorf("%q is %v, written as %q, and that is %v, %v", s, limits, again, got, err)
		}
	})
}
