package main

import (
	"strings"
	"testing"
	"time"
)

// at is the index of a policy's first target.
func at(t *testing.T, name string) int8 {
	for i, one := range targets {
		if one.policy.Name() == name {
			return int8(i)
		}
	}
	t.Fatal("no target " + name)
	return -1
}

func TestCheckComplains(t *testing.T) {
	gcra, silent := at(t, "gcra"), at(t, "quiet")
	ok := record{status: 200, served: 1, decided: true, target: gcra}
	denial := record{status: 429, denied: true, target: gcra}
	for name, tt := range map[string]struct {
		how  policy
		one  record
		want string // "" where nothing is wrong
	}{
		"passes":                      {closed, ok, ""},
		"denial":                      {closed, denial, ""},
		"denial, quiet key":           {closed, record{status: 429, denied: true, target: silent}, "quiet"},
		"429 and no denial":           {open, record{status: 429, target: gcra}, "gcra"},
		"429 and served":              {open, record{status: 429, denied: true, served: 1, target: gcra}, "gcra"},
		"served twice":                {open, record{status: 200, served: 2, decided: true}, "gcra"},
		"not served":                  {open, record{status: 200, decided: true}, "gcra"},
		"undecided under open":        {open, record{status: 200, served: 1}, ""},
		"undecided under closed":      {closed, record{status: 200, served: 1}, "gcra"},
		"undecided under fallback":    {fallback, record{status: 200, served: 1}, "gcra"},
		"503 under closed":            {closed, record{status: 503}, ""},
		"503 under open":              {open, record{status: 503}, "gcra"},
		"503 under fallback":          {fallback, record{status: 503}, "gcra"},
		"503 under fallback, caller":  {fallback, record{status: 503, left: true}, ""},
		"503 and served":              {closed, record{status: 503, served: 1}, "gcra"},
		"500":                         {closed, record{status: 500}, "gcra"},
		"a decision that never comes": {closed, record{status: 200, served: 1, decided: true, to: hang + 1}, "took"},
	} {
		wrong := check(tt.how, []record{tt.one}, nil)
		if tt.want == "" && len(wrong) > 0 || tt.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], tt.want)) {
			t.Errorf("%s: %q, want one with %q", name, wrong, tt.want)
		}
	}
}

// The bounds are to the unit.
func TestCheckCounts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		how    policy
		span   time.Duration
		losses int
		most   int
	}{
		{"gcra", closed, 0, 0, 20},
		{"gcra", open, 2 * time.Second, 0, 20 + 40},
		{"gcra", open, 2 * time.Second, 3, 20 + 40 + 3*20},
		{"gcra", fallback, 2 * time.Second, 1, 20 + 40 + 20 + 2*(10+20)},
		{"token", fallback, time.Second, 0, 10 + 20 + 2*(5+10)},
		{"leaky", closed, time.Second, 0, 20 + 20},
		{"fixed", closed, 1500 * time.Millisecond, 1, 3*20 + 2*20},
		{"counter", closed, 1500 * time.Millisecond, 1, 20 + 30 + 20},
		{"log", closed, 1500 * time.Millisecond, 1, 2*20 + 20},
	} {
		i := at(t, tt.name)
		records := make([]record, tt.most)
		for n := range records {
			records[n] = record{status: 200, served: 1, decided: true, target: i, to: tt.span}
		}
		// With the others admitted again after it.
		for other := range targets {
			records = append(records, record{status: 200, served: 1, decided: true, target: int8(other), from: 1, to: tt.span})
		}
		records = records[1:] // of this one, too
		troubles := []trouble{{losses: tt.losses}}
		if wrong := check(tt.how, records, troubles); len(wrong) != 0 {
			t.Errorf("%+v: %q", tt, wrong)
		}
		if wrong := check(tt.how, append(records, records[0]), troubles); len(wrong) != 1 || !strings.Contains(wrong[0], "let ") {
			t.Errorf("%+v, one more: %q", tt, wrong)
		}
	}
}

// A second master lets through what the first does, for its time.
func TestCheckCountsASecondMaster(t *testing.T) {
	p := targets[at(t, "token")].policy
	span, split := 4*time.Second, trouble{from: time.Second, until: 3 * time.Second, losses: 1, split: true}
	if got, want := most(p, closed, span, []trouble{split}), int64(10+80+10+10+40); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

// A key that is not admitted again is stuck, whatever else goes well.
func TestCheckWantsAllKeysBack(t *testing.T) {
	var records []record
	for i := range targets {
		records = append(records, record{status: 200, served: 1, decided: true, target: int8(i), from: 2, to: 2})
	}
	troubles := []trouble{{until: 1}}
	if wrong := check(open, records, troubles); len(wrong) != 0 {
		t.Errorf("%q", wrong)
	}
	records[3].decided = false
	if wrong := check(open, records, troubles); len(wrong) != 1 || !strings.Contains(wrong[0], "never admitted") {
		t.Errorf("%q", wrong)
	}
	if wrong := check(open, nil, troubles); len(wrong) == 0 {
		t.Error("nothing is wrong where nothing was asked")
	}
}
