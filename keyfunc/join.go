package keyfunc

import (
	"net/http"
	"strings"
)

// Join puts the keys of its parts together: a budget for each combination.
// No two lists of keys make one key, whatever the keys contain: in each of
// them `\` becomes `\\` and `|` becomes `\|`, and they are joined by `|`.
//
// The parts are asked in order, and the first error is returned as it is, so
// one part without a key, or that skips, decides for the whole. An empty key
// is [ErrNoKey]. A part that is nil, or no parts at all, is a mistake
// ([Validate]).
func Join(parts ...Func) Func {
	if err := checkParts("Join", parts...); err != nil {
		return mistake(err)
	}
	parts = append([]Func(nil), parts...) // the caller may reuse its slice
	return func(r *http.Request) (string, error) {
		var few [8]string // more parts than this cost an allocation
		keys := few[:0]
		size := len(parts) - 1
		for _, part := range parts {
			k, err := part.key(r)
			if err != nil {
				return "", err
			}
			keys = append(keys, k)
			size += len(k) + strings.Count(k, `\`) + strings.Count(k, `|`)
		}
		var b strings.Builder
		b.Grow(size)
		for i, k := range keys {
			if i > 0 {
				b.WriteByte('|')
			}
			writeEscaped(&b, k)
		}
		return b.String(), nil
	}
}

// writeEscaped writes k without a bare `|`. Only ASCII bytes are looked at:
// they are never part of another character in UTF-8, and k need not be UTF-8.
func writeEscaped(b *strings.Builder, k string) {
	for {
		i := strings.IndexAny(k, `\|`)
		if i < 0 {
			b.WriteString(k)
			return
		}
		b.WriteString(k[:i])
		b.WriteByte('\\')
		b.WriteByte(k[i])
		k = k[i+1:]
	}
}
