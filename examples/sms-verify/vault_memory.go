package main

import (
	"container/list"
	"context"
	"crypto/hmac"
	"sync"
	"time"
)

// maxCodes is how many codes are kept in memory at a time. At 20 an hour from
// one address, thousands of addresses must work together to get there.
const maxCodes = 100_000

// memoryVault is a vault in this process.
//
// It starts nothing: what has expired goes when it is next used.
type memoryVault struct {
	clock func() time.Time
	max   int

	mu      sync.Mutex
	order   list.List                // of *sentCode; all live equally long, so the first expires first
	byPhone map[string]*list.Element // by phone
}

// sentCode is a code that can still be redeemed.
type sentCode struct {
	phone   string
	mac     mac
	expires time.Time
}

// newMemoryVault keeps at most limit codes. Where there is no room, a new one
// takes that of the code nearest its end.
func newMemoryVault(limit int, clock func() time.Time) *memoryVault {
	return &memoryVault{clock: clock, max: limit, byPhone: make(map[string]*list.Element)}
}

func (v *memoryVault) put(_ context.Context, phone string, m mac) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock()
	v.expire(now)
	v.drop(v.byPhone[phone])
	if v.order.Len() >= v.max {
		v.drop(v.order.Front())
	}
	v.byPhone[phone] = v.order.PushBack(&sentCode{phone: phone, mac: m, expires: now.Add(codeLife)})
	return nil
}

func (v *memoryVault) take(_ context.Context, phone string, m mac) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire(v.clock())
	var kept mac
	e := v.byPhone[phone]
	if e != nil {
		kept = e.Value.(*sentCode).mac
	}
	if !hmac.Equal(kept[:], m[:]) || e == nil {
		return false, nil
	}
	v.drop(e)
	return true, nil
}

// expire drops what has had its time.
func (v *memoryVault) expire(now time.Time) {
	for e := v.order.Front(); e != nil && !now.Before(e.Value.(*sentCode).expires); e = v.order.Front() {
		v.drop(e)
	}
}

// drop forgets a code. A nil e is none.
func (v *memoryVault) drop(e *list.Element) {
	if e != nil {
		delete(v.byPhone, v.order.Remove(e).(*sentCode).phone)
	}
}
