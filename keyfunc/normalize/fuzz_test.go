package normalize_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/weirgo/weir/keyfunc/normalize"
)

const iotaSubscript = '\u0345' // the combining one

// FuzzFold holds both functions to what their comments say, for any text.
func FuzzFold(f *testing.F) {
	for i, tt := range tests {
		f.Add(tt.in, uint64(i)*0x9e3779b97f4a7c15)
	}
	f.Fuzz(check)
}

// TestRandomTexts looks where random bytes seldom get: among characters that
// normalization or folding changes, in runs of combining characters.
func TestRandomTexts(t *testing.T) {
	var kinds [4][]rune
	eachRune(func(r rune, s string) {
		switch p := norm.NFKD.PropertiesString(s); {
		case p.CCC() != 0:
			kinds[0] = append(kinds[0], r)
		case len(p.Decomposition()) > 0 || unicode.SimpleFold(r) != r:
			kinds[1] = append(kinds[1], r)
		case !p.BoundaryBefore():
			kinds[2] = append(kinds[2], r)
		case unicode.In(r, unicode.Cf, unicode.Mn, unicode.White_Space):
			kinds[3] = append(kinds[3], r)
		}
	})
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, 0))
	n := 5_000
	if testing.Short() {
		n = 1_000
	}
	for range n {
		var b strings.Builder
		for range 1 + rnd.IntN(6) {
			if rnd.IntN(3) == 0 {
				b.WriteByte(byte(rnd.IntN(utf8.RuneSelf)))
			}
			kind := kinds[rnd.IntN(len(kinds))]
			r := kind[rnd.IntN(len(kind))]
			for range 1 + rnd.IntN(2)*rnd.IntN(2)*rnd.IntN(34) { // mostly one
				b.WriteRune(r)
				if rnd.IntN(4) == 0 {
					r = kind[rnd.IntN(len(kind))]
				}
			}
		}
		if check(t, b.String(), rnd.Uint64()); t.Failed() {
			return
		}
	}
}

// check has what holds for any text, and for a spelling of it with other cases.
func check(t *testing.T, s string, turns uint64) {
	for _, fn := range functions {
		got := fn.f(s)
		checkResult(t, s, got, fn.f, fn.form)
		if !utf8.ValidString(s) {
			if got != "" {
				t.Errorf("%s(%+q) is %+q, want nothing", fn.name, s, got)
			}
			continue
		}
		if len(got) > fn.longest*len(s) {
			t.Errorf("%s(%+q) has %d bytes of %d", fn.name, s, len(got), len(s))
		}
		others := map[string]string{
			"NFC":         compose(norm.NFC, s),
			"NFD":         norm.NFD.String(s),
			"case":        respell(s, turns),
			"NFD, case":   respell(norm.NFD.String(s), turns),
			"white space": "\u200b \u00a0" + s + "\u2003\u00ad\t",
			"invisible":   "\u2060" + strings.ReplaceAll(s, "a", "a\u200d"),
		}
		if fn.form == norm.NFKD {
			others["Fold"] = normalize.Fold(s)
			// D146 folds before NFKD too, which decides where an iota subscript goes.
			if !strings.ContainsRune(norm.NFD.String(s), iotaSubscript) {
				others["NFKC"] = compose(norm.NFKC, s)
				others["NFKD"] = norm.NFKD.String(s)
			}
		}
		for name, other := range others {
			if g := fn.f(other); g != got {
				t.Errorf("%s: %+q gives %+q, but %s %+q gives %+q", fn.name, s, got, name, other, g)
			}
		}
	}
}

// compose gives s in form, which composes, but only if it is the same text then:
// norm takes some characters for those with the same low 16 bits.
func compose(form norm.Form, s string) string {
	if c := form.String(s); norm.NFKD.String(c) == norm.NFKD.String(s) {
		return c
	}
	return s
}

// checkResult has what holds for each result got of f for s.
func checkResult(t *testing.T, s, got string, f func(string) string, form norm.Form) {
	t.Helper()
	if again := f(got); again != got {
		t.Errorf("%+q becomes %+q, and that %+q", s, got, again)
	}
	if !utf8.ValidString(got) {
		t.Errorf("%+q becomes %+q: not UTF-8", s, got)
	}
	if strings.TrimSpace(got) != got {
		t.Errorf("%+q becomes %+q: white space around", s, got)
	}
	if !form.IsNormalString(got) {
		t.Errorf("%+q becomes %+q: not in the normal form", s, got)
	}
	if strings.ContainsAny(got, "\u00ad\u034f\u200b\u200d\ufe0f\ufeff") {
		t.Errorf("%+q becomes %+q: has what is invisible", s, got)
	}
}

// respell gives s in another case, such that strings.EqualFold holds: each
// character goes as many steps on, through those that differ in case only, as
// two bits of turns say.
//
// The iota subscript stays as it is, and nothing becomes one: case alone takes it
// for the letter iota, but the standard looks at it only when all combining
// characters have been put into order, which moves it.
func respell(s string, turns uint64) string {
	i := 0
	return strings.Map(func(r rune) rune {
		steps := turns >> (2 * i % 64) & 3
		i++
		if r == iotaSubscript {
			return r
		}
		for range steps {
			if r = unicode.SimpleFold(r); r == iotaSubscript {
				r = unicode.SimpleFold(r)
			}
		}
		return r
	}, s)
}
