package redisstore

import (
	"github.com/weirgo/weir/internal/goredis"
	"github.com/weirgo/weir/store"
)

// name is the Redis key of a charge:
//
//	prefix{key}:policy:algorithm        all policies of a key in one slot
//	prefix{tag}:key:policy:algorithm    with Config.Tag: all keys in one slot
//
// No two states have one name: the key's braces are escaped, one of more than 256
// bytes is its SHA-256, and neither policy
// nor algorithm has a colon.
func (s *Store) name(c *store.Charge) string {
	key := goredis.Escape(c.Key)
	if s.tag != "" {
		return s.prefix + "{" + s.tag + "}:" + key + ":" + c.Policy.ID()
	}
	return s.prefix + "{" + key + "}:" + c.Policy.ID()
}

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
