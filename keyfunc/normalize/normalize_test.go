package normalize_test

import (
	"os"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/weirgo/weir/keyfunc/normalize"
)

// functions are those of the package, with the form that their results are in
// and what their comments say of the length.
var functions = []struct {
	name    string
	f       func(string) string
	form    norm.Form
	longest int // bytes of the result for each of the text
}{
	{"Fold", normalize.Fold, norm.NFD, 3},
	{"FoldCompat", normalize.FoldCompat, norm.NFKD, 11},
}

// tests have what Fold gives, and FoldCompat where that differs.
var tests = []struct{ name, in, fold, compat string }{
	{"as it is", "victim@example.org", "victim@example.org", ""},
	{"space before", " victim@example.org", "victim@example.org", ""},
	{"mixed case", "ViCtIm@eXaMpLe.org", "victim@example.org", ""},
	{"tab before", "\tvictim@example.org", "victim@example.org", ""},
	{"space and line feed after", "victim@example.org \n", "victim@example.org", ""},
	{"upper case", "VICTIM@EXAMPLE.ORG", "victim@example.org", ""},
	{"white space of Unicode around", "\u3000\u00a0\u0085\u2028\u1680Vic Tim\u2003\v\f\r", "vic tim", ""},
	{"white space within", "vic  tim", "vic  tim", ""},
	{"control characters", "\x00Vic\x7f\u0086", "\x00vic\x7f\u0086", ""},

	{"empty", "", "", ""},
	{"blank", " \t", "", ""},
	{"blank beyond ASCII", "\u00a0\u3000", "", ""},
	{"only invisible", "\u200b\u200d\ufe0f", "", ""},
	{"not UTF-8", "victim\xff", "", ""},
	{"a continuation byte", "Vic\x80tim", "", ""},
	{"a surrogate", "victim\xed\xa0\x80", "", ""},
	{"cut", "jos\xc3", "", ""},
	{"a replacement character", "jos\ufffd", "jos\ufffd", ""},

	{"composed", "jos\u00e9@example.org", "jose\u0301@example.org", ""},
	{"decomposed", "jose\u0301@example.org", "jose\u0301@example.org", ""},
	{"decomposed, upper case", "JOSE\u0301@example.org", "jose\u0301@example.org", ""},
	{"marks in one order", "q\u0307\u0323", "q\u0323\u0307", ""},
	{"marks in the other order", "q\u0323\u0307", "q\u0323\u0307", ""},
	{"Angstrom sign", "\u212b", "a\u030a", ""},
	{"Hangul", "\ud55c", "\u1112\u1161\u11ab", ""},
	{"never composed", "\u0958", "\u0915\u093c", ""},

	// norm.NFC makes á of the first, and Unicode 17 something else of the second.
	{"Linear B with an accent", "\U00010061\u0301", "\U00010061\u0301", ""},
	{"Gimel with a dot", "\u05d2\u0307", "\u05d2\u0307", ""},

	{"sharp s", "stra\u00dfe", "strasse", ""},
	{"double s", "STRASSE", "strasse", ""},
	{"capital sharp s", "STRA\u1e9eE", "strasse", ""},
	{"long s", "\u017f", "s", ""},
	{"sigma", "ΟΔΥΣΣΕΥΣ", "οδυσσευσ", ""},
	{"final sigma", "Οδυσσευς", "οδυσσευσ", ""},
	{"Kelvin sign", "\u212a", "k", ""},
	{"Ohm sign", "\u2126", "\u03c9", ""},
	{"micro sign", "\u00b5", "\u03bc", ""},
	{"iota subscript", "\u1fb3", "\u03b1\u03b9", ""},
	{"iota adscript", "\u1fbc", "\u03b1\u03b9", ""},
	{"iota subscript before an accent", "\u03b1\u0345\u0301", "\u03b1\u0301\u03b9", ""},
	{"iota subscript, composed", "\u1fb4", "\u03b1\u0301\u03b9", ""},
	{"n with apostrophe", "\u0149", "\u02bcn", ""},
	{"dotless i", "ı", "ı", ""},
	{"capital I", "I", "i", ""},
	{"capital I, not alone", "Iß", "iss", ""},
	{"dotted capital I", "İ", "i\u0307", ""},
	{"dotted capital I, decomposed", "I\u0307", "i\u0307", ""},
	{"Cherokee capital", "\u13a0\u13ef\u13f0\u13f5", "\u13a0\u13ef\u13f0\u13f5", ""},
	{"Cherokee small", "\uab70\uabbf\u13f8\u13fd", "\u13a0\u13ef\u13f0\u13f5", ""},
	{"Georgian", "\u1c90\u10d0", "\u10d0\u10d0", ""},
	{"Deseret", "\U00010400", "\U00010428", ""},
	{"look-alikes", "\u0430a", "\u0430a", ""}, // Cyrillic, Latin

	{"full width", "\uff36\uff29\uff23\u3000\uff11", "\uff56\uff49\uff43\u3000\uff11", "vic 1"},
	{"half width", "\uff76\uff9e", "\uff76\uff9e", "\u30ab\u3099"},
	{"ligature", "o\ufb03ce", "office", ""}, // folding knows it
	{"ligature of ij", "\u0132", "\u0133", "ij"},
	{"superscript", "x\u00b2", "x\u00b2", "x2"},
	{"in circles", "\u24cb\u24d8\u24d2", "\u24e5\u24d8\u24d2", "vic"},
	{"mathematical", "\U0001d54d", "\U0001d54d", "v"},
	{"no-break space", "vic\u00a0tim", "vic\u00a0tim", "vic tim"},
	{"accent alone", "\u00a8", "\u00a8", "\u0308"},
	{"accent before", "\u00b4vic", "\u00b4vic", "\u0301vic"},
	{"accent within", "vic\u00b4tim", "vic\u00b4tim", "vic \u0301tim"},
	{"iota subscript alone", "\u037a", "\u037a", "\u03b9"},
	{"DŽ", "\u01c4\u01c5\u01c6", "\u01c6\u01c6\u01c6", "dz\u030cdz\u030cdz\u030c"},
	{"the longest", "\ufdfa", "\ufdfa", "صلى الله عليه وسلم"},

	{"soft hyphen", "vic\u00adtim", "victim", ""},
	{"zero width space and joiner", "\u200bvic\u200d\u200ctim\ufeff", "victim", ""},
	{"direction", "\u202evic\u2066tim\u200f\u061c", "victim", ""},
	{"variation selectors", "\u2764\ufe0f\U000e0100\u180b", "\u2764", ""},
	{"tags and what is not assigned", "vic\U000e0041\U000e0000\u2065tim", "victim", ""},
	{"Hangul filler", "vic\u3164\uffa0\u115ftim", "victim", ""},
	{"invisible before a space", "\u200b \u200b Vic", "vic", ""},
	{"invisible between e and accent", "e\u200d\u0301", "e\u0301", ""},
	{"grapheme joiner between marks", "q\u0307\u034f\u0323", "q\u0323\u0307", ""},
	{"format that is seen", "\u0600\u06dd\ufff9\ufffb\U00013430\U0001343f", "\u0600\u06dd\ufff9\ufffb\U00013430\U0001343f", ""},

	{"30 marks", "q" + strings.Repeat("\u0301", 30), "q" + strings.Repeat("\u0301", 30), ""},
	{"31 marks", "q" + strings.Repeat("\u0301", 31), "", ""},
	{"30 marks on a composed e", "\u00e9" + strings.Repeat("\u0301", 30), "", ""},
	{"invisible between many marks", "q" + strings.Repeat("\u0301", 20) + "\u034f" + strings.Repeat("\u0301", 20), "", ""},
	{"30 marks and again", strings.Repeat("q"+strings.Repeat("\u0323", 30), 3), strings.Repeat("q"+strings.Repeat("\u0323", 30), 3), ""},
}

func TestSpellings(t *testing.T) {
	for _, tt := range tests {
		if got := normalize.Fold(tt.in); got != tt.fold {
			t.Errorf("%s: Fold(%+q) is %+q, want %+q", tt.name, tt.in, got, tt.fold)
		}
		want := tt.compat
		if want == "" {
			want = tt.fold
		}
		if got := normalize.FoldCompat(tt.in); got != want {
			t.Errorf("%s: FoldCompat(%+q) is %+q, want %+q", tt.name, tt.in, got, want)
		}
	}
}

// eachRune calls do for every character, except in planes where none is assigned
// or all are for private use.
func eachRune(do func(r rune, s string)) {
	for r := rune(0); r < 0xF0000; r++ {
		if utf8.ValidRune(r) && (r < 0x40000 || r >= 0xE0000) {
			do(r, string(r))
		}
	}
}

func TestEveryCharacter(t *testing.T) {
	for _, fn := range functions {
		t.Run(fn.name, func(t *testing.T) {
			eachRune(func(r rune, s string) {
				got := fn.f(s)
				checkResult(t, s, got, fn.f, fn.form)
				if len(got) > fn.longest*len(s) {
					t.Errorf("%U becomes %d bytes", r, len(got))
				}
			})
		})
	}
}

// Upper, lower and title case, as the package unicode has them, are one.
func TestEveryCase(t *testing.T) {
	if unicode.Version != cases.UnicodeVersion {
		if os.Getenv("WEIR_CI") != "" {
			t.Fatalf("the package unicode has Unicode %s, x/text %s: take versions that have the same", unicode.Version, cases.UnicodeVersion)
		}
		t.Skipf("the package unicode has Unicode %s, x/text %s", unicode.Version, cases.UnicodeVersion)
	}
	for _, fn := range functions {
		eachRune(func(r rune, s string) {
			next := unicode.SimpleFold(r)
			if next == r {
				return
			}
			if a, b := fn.f(s), fn.f(string(next)); a != b {
				t.Errorf("%s: %U and %U differ in case only, but give %+q and %+q", fn.name, r, next, a, b)
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	for _, tt := range []struct {
		in   string
		most float64
	}{
		{"", 0},
		{"victim@example.org", 0},
		{"  victim@example.org\t", 0},
		{" Victim@Example.org", 1},
		{strings.Repeat("VICTIM", 1000), 1},
		{"Jose\u0301@example.org", 16}, // "about ten"
		{"victim\xff", 0},
	} {
		for _, fn := range functions {
			if n := testing.AllocsPerRun(100, func() { fn.f(tt.in) }); n > tt.most {
				t.Errorf("%s(%.30q): %v allocations, want at most %v", fn.name, tt.in, n, tt.most)
			}
		}
	}
}

// Run it with the race detector.
func TestConcurrent(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				for _, tt := range tests {
					if got := normalize.Fold(tt.in); got != tt.fold {
						t.Errorf("%s: Fold(%+q) is %+q, want %+q", tt.name, tt.in, got, tt.fold)
					}
					normalize.FoldCompat(tt.in)
				}
			}
		})
	}
	wg.Wait()
}

// Long texts are what an attacker would send. Each here is a megabyte.
var long = []struct{ name, unit string }{
	{"ASCII", "Victim"},
	{"composed", "\u00c9"},
	{"decomposed", "E\u0301"},
	{"marks", "\u0301"},
	{"marks out of order", "\u0301\u0323"},
	{"marks, 30 each", "q" + strings.Repeat("\u0307\u0323", 15)},
	{"iota subscript", "\u0345"},
	{"Hangul vowels", "\u1161"},
	{"invisible", "\u200b"},
	{"spaces", "\u3000"},
	{"the longest", "\ufdfa"},
}

func BenchmarkLong(b *testing.B) {
	for _, l := range long {
		s := strings.Repeat(l.unit, 1<<20/len(l.unit))
		for _, fn := range functions {
			b.Run(l.name+"/"+fn.name, func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				for b.Loop() {
					fn.f(s)
				}
			})
		}
	}
}

func Benchmark(b *testing.B) {
	for _, in := range []struct{ name, s string }{
		{"as it is", "victim@example.org"},
		{"upper case", "Victim@Example.org"},
		{"composed", "jos\u00e9@example.org"},
		{"decomposed", "Jose\u0301@example.org"},
	} {
		for _, fn := range functions {
			b.Run(in.name+"/"+fn.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					fn.f(in.s)
				}
			})
		}
	}
}
