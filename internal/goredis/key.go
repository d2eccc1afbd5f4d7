package goredis

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxKey is the longest key that is stored as it is. A longer one, which a
// client may have chosen, is stored as its SHA-256.
const maxKey = 256

// Escape makes a key fit between braces: Redis takes the first closing one for
// the end of what it hashes. No two keys become one: "%" followed by "#" stands
// before a hash, which no escaped key contains.
func Escape(key string) string {
	if len(key) > maxKey {
		sum := sha256.Sum256([]byte(key))
		return "%#" + hex.EncodeToString(sum[:])
	}
	if !strings.ContainsAny(key, "{}%") {
		return key
	}
	return escaper.Replace(key)
}

var escaper = strings.NewReplacer("{", "%7B", "}", "%7D", "%", "%25")
