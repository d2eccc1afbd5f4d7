package keyfunc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// minSecret is the least length of a secret, in bytes: 128 bits.
const minSecret = 16

// HMAC gives the key of f as a keyed hash, so that what it is made from, such as
// a phone number, is not in the store, its backups or its logs: HMAC-SHA256 (RFC
// 2104) in base64url, 43 characters. Unlike a plain hash it can't be found out by
// trying all phone numbers, unless the secret is known too.
//
// secret must be random and at least 16 bytes long, the same in all processes
// that share a store, and kept; with another all keys are new ones. It is copied.
// A shorter one, or a nil f, is a mistake ([Validate]).
//
// To find a key, hash the value in the same way. Normalise before: in
// HMAC(secret, Map(f, change)) spellings are one key.
func HMAC(secret []byte, f Func) Func {
	var errs []error
	if len(secret) < minSecret {
		// The value is the length: a secret must not stand in an error.
		errs = append(errs, Validate(wrong("HMAC: len(secret)", len(secret), "must be at least 16 bytes, from crypto/rand")))
	}
	if f == nil {
		errs = append(errs, Validate(wrong("HMAC: f", nil, "is nil")))
	} else if err := Validate(f); err != nil {
		errs = append(errs, err)
	}
	if errs != nil {
		return mistake(errors.Join(errs...))
	}
	secret = slices.Clone(secret)
	macs := sync.Pool{New: func() any { return hmac.New(sha256.New, secret) }}
	return func(r *http.Request) (string, error) {
		k, err := f.key(r)
		if err != nil {
			return "", err
		}
		mac := macs.Get().(hash.Hash)
		mac.Reset()
		mac.Write([]byte(k))
		var sum [sha256.Size]byte
		k = base64.RawURLEncoding.EncodeToString(mac.Sum(sum[:0]))
		macs.Put(mac)
		return k, nil
	}
}

// MaxKey is the length of the longest key that [Bound] leaves as it is, in bytes.
const MaxKey = 128

// hashed begins the keys that Bound has made.
const hashed = "sha256:"

// Bound is key if it is not longer than [MaxKey], and else "sha256:" and its
// SHA-256 in base64url: a client that sends long values can't fill the store, and
// two values that begin alike are still two keys. A key that begins with
// "sha256:" is hashed too, or a caller could write another's.
//
// The middleware applies it to every key. Who charges a store directly decides
// that alone.
func Bound(key string) string {
	if len(key) <= MaxKey && !strings.HasPrefix(key, hashed) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashed + base64.RawURLEncoding.EncodeToString(sum[:])
}
