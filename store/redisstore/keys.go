package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/weirgo/weir/store"
)

// maxKey is the longest key that is stored as it is. A longer one, which a
// client may have chosen, is stored as its SHA-256.
const maxKey = 256

// name is the Redis key of a charge:
//
//	prefix{key}:policy:algorithm        all policies of a key in one slot
//	prefix{tag}:key:policy:algorithm    with Config.Tag: all keys in one slot
//
// No two states have one name: the key's braces are escaped, and neither policy
// nor algorithm has a colon.
func (s *Store) name(c *store.Charge) string {
	key := escape(c.Key)
	if s.tag != "" {
		return s.prefix + "{" + s.tag + "}:" + key + ":" + c.Policy.ID()
	}
	return s.prefix + "{" + key + "}:" + c.Policy.ID()
}

// escape makes a key fit between braces: Redis takes the first closing one for
// the end of what it hashes. "%" followed by "#" stands before a hash, which no
// escaped key contains.
func escape(key string) string {
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

// oneSlot tells whether all charges have the same tag.
func (s *Store) oneSlot(charges []store.Charge) bool {
	if s.tag != "" {
		return true
	}
	for i := range charges {
		if charges[i].Key != charges[0].Key {
			return false
		}
	}
	return true
}
