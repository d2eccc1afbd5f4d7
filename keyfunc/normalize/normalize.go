// Package normalize brings the spellings of one text to one form, so that they
// are one key: a user name or an e-mail address in upper or lower case, with white
// space around it, or in another encoding of the same characters. Its functions
// are for keyfunc.Map:
//
//	email := keyfunc.Map(keyfunc.Header("X-Email"), normalize.Fold)
//
// What looks the account up must use the same function, on what it has stored
// and on what it is given. If it takes two spellings for one account and the
// key does not, each spelling buys new attempts on that account. To lower-case
// is not the same: strings.ToLower makes i of İ, and Fold keeps those apart. If
// the key takes two spellings for one and the look-up does not, two accounts
// share a budget, no more. So where there was a choice, these functions bring
// together.
//
// All functions here
//
//   - remove white space (the property White_Space) around the text, not in it;
//   - remove what is invisible, anywhere: Default_Ignorable_Code_Point, such as
//     soft hyphens, zero width spaces and joiners, marks of direction and
//     variation selectors;
//   - give "", which is no key, for text that can't be used: not UTF-8, nothing
//     left, or more than 30 combining characters in a row, which no language
//     needs (Stream-Safe Text Format, Unicode Standard Annex #15);
//   - change nothing in what they have returned, and leave code points that are
//     not assigned as they are;
//   - may be called by many goroutines at once.
//
// The result is for a key, not to be shown: accents stand behind their letters as
// combining characters. To compose them would make no more texts equal, except by
// mistake: x/text takes some characters for others when it composes.
//
// They do not judge the text. Letters that look alike in two scripts stay
// different, and so do control characters and the parts of an address.
//
// The time is linear in the length of the text: ASCII costs no allocation, or one
// where it has upper case; other text costs a microsecond or two and about ten
// allocations for an address, and up to a second for a megabyte. The result can
// be longer than the text. Where callers may send long texts, refuse them first:
//
//	func(s string) string {
//		if len(s) > 320 {
//			return "" // no key
//		}
//		return normalize.Fold(s)
//	}
//
// The tables are those of golang.org/x/text and of the package unicode: Unicode
// 15.0 in programs built by Go before 1.27, or else Unicode 17.0. Where two such
// programs share a store, the keys of characters that only one knows differ.
package normalize

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold gives equal results for texts that are a canonical caseless match (the
// Unicode Standard, section 3.13, D145) when what the package comment names has
// been removed: upper and lower case are one, composed and decomposed
// characters are one. The result is decomposed, in NFD.
//
// Case folding is full and of no language: ß, ẞ and ss are one, so are σ and ς,
// and I is i. The Turkish letters are others: İ is i with U+0307, and ı is only
// itself.
//
// The result has at most three times the bytes of s.
func Fold(s string) string {
	if isASCII(s) {
		return foldASCII(s)
	}
	s = foldCase(norm.NFD.String(visible(s)))
	// The second NFD is the standard's. No folding needs it so far.
	return streamSafe(norm.NFD.String(s))
}

// FoldCompat gives equal results for texts that are a compatibility caseless
// match (D146). Beyond what is one for [Fold], it takes for one what differs in
// form only: full-width and half-width letters, ligatures, superscripts,
// letters in circles, a no-break space and a space. The result is in NFKD.
//
// It brings together what can mean different things, such as x² and x2. Use it
// where the look-up does too.
//
// The result has at most eleven times the bytes of s: U+FDFA alone becomes 18
// characters.
func FoldCompat(s string) string {
	if isASCII(s) {
		return foldASCII(s)
	}
	s = foldCase(norm.NFD.String(visible(s)))
	s = foldCase(norm.NFKD.String(s))
	// An accent that stands alone becomes a space and a combining accent.
	return strings.TrimSpace(streamSafe(norm.NFKD.String(s)))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func foldASCII(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// visible removes the invisible, and then white space around, which the
// invisible may have hidden. It comes before any normalization: what is removed
// would keep combining characters from being put into order. It gives "" for what
// is not UTF-8.
func visible(s string) string {
	if !utf8.ValidString(s) {
		return ""
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, s))
}

// folder is stateless, unlike other casers: its comment says that it may be
// shared.
var folder = cases.Fold()

// foldCase is the toCasefold of the Unicode Standard.
func foldCase(s string) string { return strings.Map(foldCherokee, folder.String(s)) }

// foldCherokee mends the folding of Cherokee, where upper case is the folded
// form, as it was there first: x/text exchanges upper and lower case instead.
func foldCherokee(r rune) rune {
	switch {
	case 0xAB70 <= r && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case 0x13F8 <= r && r <= 0x13FD:
		return r - 0x13F8 + 0x13F0
	}
	return r
}

// streamSafe gives "" if s had too many combining characters in a row. There
// x/text sets a grapheme joiner, before it has put them into order, so equal
// texts would come out different. All others of it have been removed as
// invisible.
func streamSafe(s string) string {
	if strings.Contains(s, norm.GraphemeJoiner) {
		return ""
	}
	return s
}
