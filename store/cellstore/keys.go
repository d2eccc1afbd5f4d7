package cellstore

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weirgo/weir/internal/goredis"
	"github.com/weirgo/weir/store"
)

// name is the Redis key of a charge,
//
//	prefix{key}:policy:gcra:cell
//
// No two states have one name, and no key of redisstore, whatever its prefix,
// ends like this.
func (s *Store) name(c *store.Charge) string {
	return s.prefix + "{" + validUTF8(goredis.Escape(c.Key)) + "}:" + c.Policy.ID() + ":cell"
}

// validUTF8 is s, which has been escaped, with each byte that is no part of a
// rune as %XX: from 80 on, so that no escape of another character is like it.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "%%%02X", s[i])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}
