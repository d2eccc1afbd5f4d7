//go:build !race

// With the race detector sync.Pool drops items on purpose.

package keyfunc_test

import (
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// A flood of bodies without the field costs nothing once they are read.
func TestJSONAllocations(t *testing.T) {
	f := keyfunc.JSON("user", "phone")
	for body, most := range map[string]float64{
		`{"user":{"fax":"+1","a":[{"b":"c"}]},"another":"` + strings.Repeat("x", 1000) + `"}`: 0,
		`{"user":{"phone":true,"Phone":1}}`:                                                   0,
		`{"user":{"phone":"+12025550142"}}`:                                                   1,
	} {
		r := bodyRequest(strings.NewReader(body))
		if n := testing.AllocsPerRun(100, func() { _, _ = f(r) }); n > most {
			t.Errorf("%.50s: %v allocations", body, n)
		}
	}
}

// A body of a known length costs its buffer, what stands in for it, and the key.
func TestBodyAllocations(t *testing.T) {
	f, body := keyfunc.JSON("phone"), strings.NewReader(phoneBody)
	r := bodyRequest(nil)
	s := &source{Reader: body}
	r.ContentLength = int64(len(phoneBody))
	n := testing.AllocsPerRun(100, func() {
		body.Reset(phoneBody)
		r.Body = s
		if k, _ := f(r); k != "+12025550142" {
			t.Errorf("got %q", k)
		}
	})
	if n > 3 {
		t.Errorf("%v allocations, want 3", n)
	}
}
