package keyfunc_test

import (
	"errors"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// FuzzFirst holds keys that First has made to be equal only if the same branch
// has answered with the same key, also with Join around it and inside.
func FuzzFirst(f *testing.F) {
	f.Add("203.0.113.7", "203.0.113.7", "203.0.113.7", "")
	f.Add("1:a", "a", "", "1:a")
	f.Add("0:a", "", "0:", "a")
	f.Add("a|b", "a", "b", `a\`)
	f.Add("0:a|1:b", "|1:b", "b", ":")
	f.Add("", "", "", "")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		type answer struct {
			place int
			keys  [2]string // of that branch; its own and, with Join, the other's
		}
		// key is that of f, which is to be there unless want has no place.
		key := func(f keyfunc.Func, want answer) string {
			t.Helper()
			k, err := f(request("/"))
			if (k == "") != (want.place < 0) || (k == "") != errors.Is(err, keyfunc.ErrNoKey) {
				t.Fatalf("%q of %q: got %q, %v", want, []string{a, b, c, d}, k, err)
			}
			return k
		}
		first := func(keys ...string) answer {
			for i, k := range keys {
				if k != "" {
					return answer{i, [2]string{k}}
				}
			}
			return answer{place: -1}
		}
		made := [3]map[string]answer{{}, {}, {}}
		add := func(kind int, f keyfunc.Func, want answer) {
			t.Helper()
			k := key(f, want)
			if k == "" {
				return
			}
			if had, ok := made[kind][k]; ok && had != want {
				t.Fatalf("%q is the key of %q and of %q", k, had, want)
			}
			made[kind][k] = want
		}
		for _, keys := range [][]string{
			{a, b, c}, {b, c, d}, {"", a, b}, {"", "", a}, {d, "", c}, {"", b}, {c}, {"", d},
		} {
			want := first(keys...)
			inner := keyfunc.First(consts(keys...)...)
			add(0, inner, want)

			// Another part beside First.
			for _, beside := range []string{a, d} {
				joined := want
				joined.keys[1] = beside
				if beside == "" {
					joined = answer{place: -1}
				}
				add(1, keyfunc.Join(inner, keyfunc.Join(consts(beside)...)), joined)
			}

			// Join in First: of the first two, or else the last.
			two := answer{place: -1}
			last := keys[len(keys)-1]
			switch {
			case len(keys) > 1 && keys[0] != "" && keys[1] != "":
				two = answer{0, [2]string{keys[0], keys[1]}}
			case len(keys) > 1 && last != "":
				two = answer{1, [2]string{last}}
			}
			if len(keys) > 1 {
				add(2, keyfunc.First(keyfunc.Join(consts(keys[:2]...)...), consts(last)[0]), two)
			}
		}
	})
}
