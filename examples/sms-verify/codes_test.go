package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// testCodes are codes that never fail.
type testCodes struct {
	*codes
	t      *testing.T
	memory *memoryVault
}

func newTestCodes(t *testing.T, limit int) (testCodes, *fakeClock) {
	clock := &fakeClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	memory := newMemoryVault(limit, clock.Now)
	return testCodes{&codes{newKey(), memory}, t, memory}, clock
}

func (c testCodes) issue(phone string) string {
	c.t.Helper()
	code, err := c.codes.issue(c.t.Context(), phone)
	if err != nil {
		c.t.Fatal(err)
	}
	return code
}

func (c testCodes) redeem(phone, code string) bool {
	c.t.Helper()
	valid, err := c.codes.redeem(c.t.Context(), phone, code)
	if err != nil {
		c.t.Fatal(err)
	}
	return valid
}

func TestCodeForm(t *testing.T) {
	c, _ := newTestCodes(t, 1)
	zero := false
	for range 1000 {
		code := c.issue(alice)
		if len(code) != 6 || strings.Trim(code, "0123456789") != "" {
			t.Fatalf("code %q, want six digits", code)
		}
		zero = zero || code[0] == '0'
	}
	if !zero { // of uniform ones a tenth do: the odds of none are 0.9¹⁰⁰⁰
		t.Error("no code begins with 0")
	}
}

func TestCodeLife(t *testing.T) {
	c, clock := newTestCodes(t, 10)
	code := c.issue(alice)
	clock.advance(codeLife - 1)
	bobs := c.issue(bob)
	clock.advance(1)
	if c.redeem(alice, code) {
		t.Error("a code lives for 10 minutes and no longer")
	}
	if !c.redeem(bob, bobs) {
		t.Error("a younger code must live on")
	}
	if len(c.memory.byPhone) != 0 || c.memory.order.Len() != 0 {
		t.Errorf("%d, %d codes kept, want none", len(c.memory.byPhone), c.memory.order.Len())
	}

	code = c.issue(alice)
	clock.advance(codeLife - 1)
	if !c.redeem(alice, code) {
		t.Error("a code must live for 10 minutes")
	}
}

func TestCodeReplaced(t *testing.T) {
	c, clock := newTestCodes(t, 10)
	first := c.issue(alice)
	clock.advance(9 * time.Minute)
	second := c.issue(alice)
	for second == first {
		second = c.issue(alice)
	}
	if c.redeem(alice, first) {
		t.Error("the code before must be dead")
	}
	clock.advance(9 * time.Minute)
	if !c.redeem(alice, second) {
		t.Error("the new code must have its own 10 minutes")
	}
	if c.redeem(alice, second) {
		t.Error("a code must work once")
	}
}

func TestCodesBounded(t *testing.T) {
	c, _ := newTestCodes(t, 3)
	var sent []string
	for i := range 5 {
		sent = append(sent, c.issue(fmt.Sprint(i)))
		if c.memory.order.Len() > 3 || len(c.memory.byPhone) > 3 {
			t.Fatalf("%d, %d codes kept, want 3 at most", c.memory.order.Len(), len(c.memory.byPhone))
		}
	}
	sent[4] = c.issue("4") // replaces: pushes nobody out
	for i, code := range sent {
		if got, want := c.redeem(fmt.Sprint(i), code), i >= 2; got != want {
			t.Errorf("code %d: redeemed %v, want %v", i, got, want)
		}
	}
}

// Neither the code nor anything that can be found without the key is kept.
func TestCodeKeptAsKeyedHash(t *testing.T) {
	one, _ := newTestCodes(t, 1)
	two, _ := newTestCodes(t, 1)
	if one.mac(alice, "123456") == two.mac(alice, "123456") {
		t.Error("two processes have one key")
	}
	if one.mac(alice, "123456") == one.mac(bob, "123456") {
		t.Error("the hash is not bound to the phone")
	}
	if one.mac("+1", "23") == one.mac("+12", "3") {
		t.Error("the hash does not tell where the phone ends")
	}
}
