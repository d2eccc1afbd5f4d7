package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/weirgo/weir/algorithms"
)

const mebibyte = 1 << 20

// oddKeys are different keys that a store may take for one another, or stumble
// over: what ends, separates or escapes something in some notation, what is no text,
// and what is too long to be kept as it is. id is that of the policy that they are
// charged under, which stands beside them in stores.
func oddKeys(id string) []string {
	keys := []string{
		"k", "K", "k ", " k", " ", "\t", "\n", "k\n", "k\r\n", "\r\n", "k\t",
		"\x00", "\x00\x00", "k\x00", "\x00k", "k\x00l",
		// No UTF-8, and what would be put in its place; half of a surrogate pair; a NUL in
		// two bytes.
		"\xff", "\xfe", "k\xff", "k\xfe", "\xc3", "\ufffd", "k\ufffd", "\xed\xa0\x80", "\xc0\x80",
		"é", "e\u0301", "E\u0301", "\u200b", "k\u200b", "\U0001f511",
		"{", "}", "{}", "}{", "{{", "}}", "{k}", "{k", "k}", "{{k}}", "{}k", "k{}", "{k}{k}", "}k{",
		":", "::", "k:", ":k", "k:k", "k:" + id, "k}:" + id, "{k}:" + id, "weir:{k}:" + id,
		"%", "%%", "%25", "%2525", "%7B", "%7b", "%7D", "%00", "%FF", "%ff", "%2", "%#", "%#00",
		"/", "//", "/k", "k/", "/k/", "../k", "k?", "?", "*", "k*", "[k]", "^k", "\\", "\\\\", "\\k", "\\:", "k\\",
		"'", `"`, "`", "$", "${key}", "KEYS[1]", "k;l", "k,l", "k|l", "k=l", "k&l", "#", "@", "~", "-", "--", "0", "00", "-1", "1e3", "nil", "null", "NaN",
		"*1\r\n$8\r\nFLUSHALL\r\n", "]]",
	}
	for _, n := range []int{255, 256, 257, 512, 513, 65_536, mebibyte} {
		keys = append(keys, strings.Repeat("x", n))
	}
	rest := strings.Repeat("x", mebibyte-1)
	sum := sha256.Sum256([]byte(rest + "x"))
	return append(keys,
		rest+"y", "y"+rest, rest[:mebibyte/2]+"y"+rest[mebibyte/2:], rest,
		strings.Repeat("{", mebibyte), strings.Repeat("}", mebibyte), strings.Repeat("%", mebibyte),
		strings.Repeat("\x00", mebibyte), strings.Repeat("\xff", mebibyte), strings.Repeat("\n", mebibyte),
		// How a long key may be kept.
		hex.EncodeToString(sum[:]), "%#"+hex.EncodeToString(sum[:]), string(sum[:]),
	)
}

// checkKeys: sentence 9. Whatever bytes a key has, it is charged by itself and
// always the same, and the store is none the worse for it.
func (f *fixture) checkKeys() {
	f.Helper()
	p := f.policy("p", algorithms.PerMinute(3))
	keys := oddKeys(p.ID())
	for _, step := range []struct {
		cost, remaining int64
		limited         bool
		what            string
	}{
		{1, 2, false, "is not one never seen"},
		{1, 1, false, "is not the key that it was"},
		{2, 1, true, "is not the key that it was"},
		{1, 0, false, "is not the key that it was"},
		{1, 0, true, "has more than its own"},
	} {
		for _, key := range keys {
			// A copy, so that nothing goes by where a text lies in memory.
			if r := f.one(p, strings.Clone(key), step.cost); r.Limited != step.limited || r.Remaining != step.remaining {
				sentence(9).broke(f, "key %.100q of %d bytes %s: a cost of %d is %+v; limited should be %v, and %d remain", key, len(key), step.what, step.cost, r, step.limited, step.remaining)
				return
			}
		}
	}
	// One after the other, so that what is remembered of a refusal meets the next key.
	q := f.policy("q", algorithms.PerMinute(3))
	for _, key := range keys {
		if full, more := f.one(q, strings.Clone(key), 3), f.one(q, strings.Clone(key), 1); full.Limited || !more.Limited {
			sentence(9).broke(f, "key %.100q of %d bytes, after others were refused: 3 of 3 are %+v, and one more %+v", key, len(key), full, more)
			return
		}
	}
	if r := f.one(p, "never seen", 0); r != fresh(3) {
		sentence(9).broke(f, "a key never seen, after all others were charged: %+v", r)
	}
}
