package twin

import "testing"

func TestParse(t *testing.T) {
	for body, want := range map[string]Twin{
		"x = p1 + s2 -- and p9\nn3 = 1": {Body: "x = p1 + s2 -- and p9\nn3 = 1", Params: 1, Words: 3},
		" limited = false ":             {Body: "limited = false"},
		"ap1 = xs2 + p1s":               {Body: "ap1 = xs2 + p1s"},
	} {
		if got := Parse(body); got != want {
			t.Errorf("%q: %+v, want %+v", body, got, want)
		}
	}
}

func TestDecision(t *testing.T) {
	for body, want := range map[string]string{
		"limited = true\n-- answers\nlimit = 1": "limited = true",
		"limited = true\nlimit = 1":             "limited = true\nlimit = 1",
	} {
		if got := Parse(body).Decision(); got != want {
			t.Errorf("%q: %q", body, got)
		}
	}
}

func TestFunction(t *testing.T) {
	want := "function(now, cost, age, p1, s1, s2)\nlocal limited, limit, remaining, retry, reset, n1, n2\nn2 = s1 + p1\nreturn limited, limit, remaining, retry, reset, n1, n2\nend"
	if got := Parse("n2 = s1 + p1").Function(); got != want {
		t.Errorf("%s", got)
	}
	want = "function(now, cost, age)\nlocal limited, limit, remaining, retry, reset\nlimit = 1\nreturn limited, limit, remaining, retry, reset\nend"
	if got := Parse("limit = 1").Function(); got != want {
		t.Errorf("%s", got)
	}
}
