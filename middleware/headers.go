package middleware

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// Dialect is a set of names for what clients are told of limits.
type Dialect uint8

const (
	// XRateLimit is the usual X-RateLimit-Limit, -Remaining and -Reset, of the
	// strictest rule.
	XRateLimit Dialect = 1 << iota

	// Draft11 is RateLimit and RateLimit-Policy, with an item for each rule, in the
	// syntax of draft-ietf-httpapi-ratelimit-headers-11. It is no standard yet, and
	// can change.
	Draft11
)

// When says which answers have the headers.
type When uint8

const (
	Always    When = iota // every answer
	OnRefusal             // only those of refused requests
	Never                 // none: on a login route, say, the numbers help an attacker
)

// ResetFormat is how a time of reset is written.
type ResetFormat uint8

const (
	DeltaSeconds ResetFormat = iota // seconds from now, as redis-cell has it, without a rest below a millisecond: "42"
	UnixSeconds                     // seconds since 1970: "1796045804"
	RFC3339                         // "2026-11-30T20:56:44Z"
)

// Headers says which headers tell clients of limits. Retry-After is not one of
// them: a refusal always has it, unless the request can never pass. It is right for
// the Middlewares around the one that refuses, too, which have charged the request.
type Headers struct {
	Dialect Dialect // 0 means XRateLimit; XRateLimit | Draft11 has both
	When    When

	// Prefix replaces "X-RateLimit-" in the names of XRateLimit. Limit, Remaining
	// and Reset are names to use instead of a prefix and these words.
	Prefix                  string
	Limit, Remaining, Reset string

	// ResetAs is how XRateLimit writes the reset, rounded up to whole seconds. A time
	// of day is by this process's clock as it was before the store was asked. Of a
	// window that ends with a whole second it is the same in each answer, where the
	// store takes less than a second and its clock is at most 10 ms behind this one's.
	// Of other windows two answers can be a second apart: a store doesn't say what
	// time it has.
	ResetAs ResetFormat

	// PartitionSecret adds the parameter "pk" to the items of Draft11: 12 bytes of
	// an HMAC-SHA256 of the policy and the key, so that a client with several keys
	// can tell them apart, and nobody what they are. It must be random, at least 16
	// bytes long, and the same in all processes. Nil leaves "pk" out.
	PartitionSecret []byte

	// RetryJitter adds to the Retry-After of each refusal a random time of up to this
	// long, so that those who were refused together don't come back together. The
	// wait never gets shorter than what is right.
	RetryJitter time.Duration

	// Expose lets scripts of other origins read the headers and Retry-After, by naming
	// them in Access-Control-Expose-Headers, beside those that are named there.
	Expose bool
}

// headers are Headers that were checked.
type headers struct {
	dialect Dialect
	when    When
	names   [3]string // limit, remaining, reset, in net/http's canonical form
	reset   ResetFormat
	jitter  time.Duration
	expose  string                      // "" exposes nothing
	items   map[*algorithms.Policy]item // of Draft11
	hashers *sync.Pool                  // of *hasher; nil: no "pk"
}

var words = [3]string{"Limit", "Remaining", "Reset"}

// fields are the names of XRateLimit, and those of them that are set.
func (h *Headers) fields() (names, set [3]string) {
	set = [3]string{h.Limit, h.Remaining, h.Reset}
	for i, word := range words {
		names[i] = set[i]
		if names[i] == "" {
			prefix := h.Prefix
			if prefix == "" {
				prefix = "X-RateLimit-"
			}
			names[i] = prefix + word
		}
	}
	return names, set
}

func (h *Headers) check(ck *checker) {
	if h.Dialect > XRateLimit|Draft11 {
		ck.bad("Headers.Dialect", int(h.Dialect), "must be XRateLimit, Draft11 or both, joined by |")
	}
	if h.When > Never {
		ck.bad("Headers.When", int(h.When), "must be Always, OnRefusal or Never")
	}
	if h.ResetAs > RFC3339 {
		ck.bad("Headers.ResetAs", int(h.ResetAs), "must be DeltaSeconds, UnixSeconds or RFC3339")
	}
	if h.RetryJitter < 0 || h.RetryJitter > maxJitter {
		ck.bad("Headers.RetryJitter", h.RetryJitter, fmt.Sprintf("must be 0 to %v; it only lengthens the wait", maxJitter))
	}
	if h.PartitionSecret != nil && len(h.PartitionSecret) < 16 {
		ck.bad("Headers.PartitionSecret: length", len(h.PartitionSecret), "must be at least 16 bytes, from crypto/rand")
	}
	if h.Prefix != "" && !isToken(h.Prefix) {
		ck.bad("Headers.Prefix", h.Prefix, "must be the beginning of a header's name, such as X-Rate-Limit-")
	}
	names, set := h.fields()
	for i, word := range words {
		field := "Headers." + word
		if set[i] != "" && !isToken(set[i]) {
			ck.bad(field, set[i], "must be a header's name, such as X-RateLimit-"+word)
			continue
		}
		name := http.CanonicalHeaderKey(names[i])
		if slices.Contains(reserved, name) {
			ck.bad(field, names[i], "is a header with a meaning of its own; choose another name")
		}
		for j := range i {
			if name == http.CanonicalHeaderKey(names[j]) {
				ck.bad(field, names[i], "is the name of "+words[j]+" too; each needs a name of its own")
				break
			}
		}
	}
}

const maxJitter = time.Hour

// reserved are headers that this package or net/http writes or acts on, or a
// client does.
var reserved = []string{
	"Ratelimit", "Ratelimit-Policy", "Retry-After", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
	"Cache-Control", "Content-Encoding", "Content-Length", "Content-Type", "Etag", "Last-Modified", "X-Content-Type-Options",
	"Connection", "Date", "Location", "Set-Cookie", "Trailer", "Transfer-Encoding", "Upgrade", "Vary", "Www-Authenticate",
}

// isToken tells whether s can be the name of a header (RFC 9110 §5.6.2).
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	}) < 0
}

func (h *Headers) compile(rules []Rule, ban *algorithms.Policy) headers {
	c := headers{dialect: h.Dialect, when: h.When, reset: h.ResetAs, jitter: h.RetryJitter, hashers: newHashers(h.PartitionSecret)}
	if c.dialect == 0 {
		c.dialect = XRateLimit
	}
	if c.when == Never {
		c.dialect = 0
	}
	names, _ := h.fields()
	var exposed []string
	if c.dialect&XRateLimit != 0 {
		exposed = append(exposed, names[:]...)
	}
	if c.dialect&Draft11 != 0 {
		exposed = append(exposed, "RateLimit", "RateLimit-Policy")
		c.items = items(rules, ban)
	}
	if h.Expose {
		c.expose = strings.Join(append(exposed, "Retry-After"), ", ")
	}
	for i, name := range names {
		c.names[i] = http.CanonicalHeaderKey(name)
	}
	return c
}
