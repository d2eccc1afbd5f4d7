package middleware_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// quota is an item of RateLimit with that of RateLimit-Policy; −1 is not said.
type quota struct {
	name       string
	q, w, r, t int64
	unit       string
	pk         []byte
}

// quotas are the items of an answer, as a parser of structured fields finds them;
// all that is not as the draft has it is an error.
func quotas(t *testing.T, h http.Header) []quota {
	t.Helper()
	var all []quota
	for i, item := range sfItems(t, h["Ratelimit-Policy"]) {
		name, ok := item.Value.(string)
		if !ok {
			t.Errorf("policy %d is a %T", i, item.Value)
		}
		one := quota{name: name, q: -1, w: -1, r: -1, t: -1, unit: "requests"}
		for _, param := range item.Params.Names() {
			value, _ := item.Params.Get(param)
			switch param {
			case "q":
				one.q = integer(t, value, 0)
			case "w":
				one.w = integer(t, value, 1)
			case "qu":
				one.unit, _ = value.(string)
			case "pk":
				one.pk, _ = value.([]byte)
			default:
				t.Errorf("policy %s has %s", name, param)
			}
		}
		if one.q < 0 || !slices.Contains([]string{"requests", "content-bytes", "concurrent-requests"}, one.unit) {
			t.Errorf("policy %+v", one)
		}
		all = append(all, one)
	}
	limits := sfItems(t, h["Ratelimit"])
	if len(limits) != len(all) {
		t.Fatalf("%d policies and %d limits: %q %q", len(all), len(limits), h["Ratelimit-Policy"], h["Ratelimit"])
	}
	for i, item := range limits {
		one := &all[i]
		if item.Value != one.name {
			t.Errorf("limit %d is %v, want %s", i, item.Value, one.name)
		}
		for _, param := range item.Params.Names() {
			value, _ := item.Params.Get(param)
			switch param {
			case "r":
				one.r = integer(t, value, 0)
			case "t":
				one.t = integer(t, value, 1)
			case "pk":
				if pk, ok := value.([]byte); !ok || !bytes.Equal(pk, one.pk) {
					t.Errorf("pk %v of %s, want %v", value, one.name, one.pk)
				}
			default:
				t.Errorf("limit %s has %s", one.name, param)
			}
		}
		if _, ok := item.Params.Get("pk"); ok != (one.pk != nil) {
			t.Errorf("limit %s has a pk: %t", one.name, ok)
		}
		full := one.r == one.q && one.q < largest // beyond that it can't be told
		if one.r < 0 || one.r > one.q || full && one.t >= 0 || one.r < one.q && one.t < 0 {
			t.Errorf("limit %+v", *one)
		}
	}
	return all
}

func sfItems(t *testing.T, lines []string) (items []httpsfv.Item) {
	t.Helper()
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		t.Fatalf("%q: %v", lines, err)
	}
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok {
			t.Fatalf("a %T in %q", member, lines)
		}
		items = append(items, item)
	}
	// What is written again is what was read, so nothing was let pass.
	if again, err := httpsfv.Marshal(list); len(list) > 0 && (err != nil || again != strings.Join(lines, ", ")) {
		t.Errorf("%q, %v; want %q", again, err, lines)
	}
	return items
}

// largest is the largest Integer of RFC 9651.
const largest = 999_999_999_999_999

// integer is value, which must be an Integer of RFC 9651.
func integer(t *testing.T, value any, least int64) int64 {
	t.Helper()
	n, ok := value.(int64)
	if !ok || n < least || n > largest {
		t.Errorf("%T %v, want an integer from %d on", value, value, least)
	}
	return n
}
