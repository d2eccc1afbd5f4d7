package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"time"
)

// codeLife is how long a code is valid; NIST SP 800-63B allows no more.
const codeLife = 10 * time.Minute

// codes makes and redeems codes. It keeps none as text, but a hash whose key is
// not kept beside it, so that the memory of a process or of Redis shows no code.
type codes struct {
	key   []byte // all processes that share a vault have the same
	vault vault
}

// mac is the keyed hash of a code for a phone.
type mac [sha256.Size]byte

// vault keeps the codes that were sent, one for each phone in E.164, for
// codeLife. It is safe for concurrent use.
type vault interface {
	// put keeps m in the place of what it had for phone.
	put(ctx context.Context, phone string, m mac) error
	// take tells whether m is what it has for phone, and then forgets it: of two
	// calls with the right one, one gets true.
	take(ctx context.Context, phone string, m mac) (bool, error)
}

// newKey is a key that nobody else has.
func newKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: the program ends instead
	return key
}

// issue makes a new code for phone, which replaces the one before.
func (c *codes) issue(ctx context.Context, phone string) (string, error) {
	n, _ := rand.Int(rand.Reader, big.NewInt(1_000_000)) // uniform; never fails, as above
	code := fmt.Sprintf("%06d", n)
	return code, c.vault.put(ctx, phone, c.mac(phone, code))
}

// redeem tells whether code is the one sent to phone, and makes it invalid: of
// two calls with the right code one succeeds.
func (c *codes) redeem(ctx context.Context, phone, code string) (bool, error) {
	return c.vault.take(ctx, phone, c.mac(phone, code))
}

// mac binds code to phone.
func (c *codes) mac(phone, code string) (m mac) {
	h := hmac.New(sha256.New, c.key)
	h.Write([]byte(phone + "\x00" + code)) // a phone in E.164 has no zero byte
	h.Sum(m[:0])
	return m
}
