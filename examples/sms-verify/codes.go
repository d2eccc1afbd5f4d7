package main

import (
	"container/list"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"math/big"
	"sync"
	"time"
)

const (
	// codeLife is how long a code is valid; NIST SP 800-63B allows no more.
	codeLife = 10 * time.Minute
	// maxCodes is how many codes are kept at a time. At 20 an hour from one
	// address, thousands of addresses must work together to get there.
	maxCodes = 100_000
)

// codes keeps the codes that were sent, one for each phone: not as text but as
// a hash whose key is known to this process only, so that its memory shows no
// code. It is safe for concurrent use.
//
// It starts nothing: what has expired goes when a code is next issued or
// redeemed.
type codes struct {
	clock func() time.Time
	max   int
	key   [sha256.Size]byte

	mu      sync.Mutex
	order   list.List                // of *sentCode; all live equally long, so the first expires first
	byPhone map[string]*list.Element // by phone, in E.164
}

// sentCode is a code that can still be redeemed.
type sentCode struct {
	phone   string
	mac     [sha256.Size]byte
	expires time.Time
}

// newCodes keeps at most limit codes.
func newCodes(limit int, clock func() time.Time) *codes {
	c := &codes{clock: clock, max: limit, byPhone: make(map[string]*list.Element)}
	_, _ = rand.Read(c.key[:]) // never fails: the program ends instead
	return c
}

// issue makes a new code for phone, which replaces the one before. Where there
// is no room it takes that of the code nearest its end.
func (c *codes) issue(phone string) string {
	n, _ := rand.Int(rand.Reader, big.NewInt(1_000_000)) // uniform; never fails, as above
	code := fmt.Sprintf("%06d", n)

	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock()
	c.expire(now)
	c.drop(c.byPhone[phone])
	if c.order.Len() >= c.max {
		c.drop(c.order.Front())
	}
	c.byPhone[phone] = c.order.PushBack(&sentCode{phone: phone, mac: c.mac(phone, code), expires: now.Add(codeLife)})
	return code
}

// redeem tells whether code is the one sent to phone, and makes it invalid: of
// two calls with the right code one succeeds.
func (c *codes) redeem(phone, code string) bool {
	// Found before it is known whether there is a code, so that the time this
	// takes does not tell.
	mac := c.mac(phone, code)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire(c.clock())
	var kept [sha256.Size]byte
	e := c.byPhone[phone]
	if e != nil {
		kept = e.Value.(*sentCode).mac
	}
	if !hmac.Equal(kept[:], mac[:]) || e == nil {
		return false
	}
	c.drop(e)
	return true
}

// mac binds code to phone.
func (c *codes) mac(phone, code string) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, c.key[:])
	h.Write([]byte(phone + "\x00" + code)) // a phone in E.164 has no zero byte
	h.Sum(sum[:0])
	return sum
}

// expire drops what has had its time.
func (c *codes) expire(now time.Time) {
	for e := c.order.Front(); e != nil && !now.Before(e.Value.(*sentCode).expires); e = c.order.Front() {
		c.drop(e)
	}
}

// drop forgets a code. A nil e is none.
func (c *codes) drop(e *list.Element) {
	if e != nil {
		delete(c.byPhone, c.order.Remove(e).(*sentCode).phone)
	}
}
