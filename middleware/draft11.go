package middleware

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"math/big"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// item is what Draft11 says of a policy whatever the request, as Structured Field
// Values (RFC 9651).
type item struct {
	name   string // a String: `"burst"`
	policy string // the Item of RateLimit-Policy: `"burst";q=100;w=60`
}

// items are those of all policies that a request can be charged by.
func items(rules []Rule, ban *algorithms.Policy) map[*algorithms.Policy]item {
	all := make(map[*algorithms.Policy]item)
	for i := range rules {
		for _, p := range rules[i].policies() {
			all[p] = itemOf(p, rules[i].Unit)
		}
	}
	if ban != nil {
		all[ban] = itemOf(ban, "")
	}
	return all
}

func itemOf(p *algorithms.Policy, unit string) item {
	// The name of a policy has no character that a String must escape.
	name := `"` + p.Name() + `"`
	text := name + ";q=" + strconv.FormatInt(min(capacity(p), maxInteger), 10)
	if unit != "" && unit != "requests" {
		text += `;qu="` + unit + `"`
	}
	if w := span(p); w > 0 {
		text += ";w=" + strconv.FormatInt(w, 10)
	}
	return item{name, text}
}

// capacity is the most that can be taken at once.
func capacity(p *algorithms.Policy) int64 {
	_, r := p.Decide(nil, nil, 0, 0, 0)
	return r.Limit
}

// span is in how many whole seconds the capacity is allowed once: for a bucket the
// time in which it fills from nothing, for a window its length. It is 0 for an
// algorithm that has its numbers elsewhere than in the Limit.
func span(p *algorithms.Policy) int64 {
	l := p.Limit()
	if l.Count < 1 || l.Period < 1 {
		return 0
	}
	all := big.NewInt(capacity(p))
	all.Mul(all, big.NewInt(int64(l.Period)))
	per := big.NewInt(l.Count)
	per.Mul(per, big.NewInt(int64(time.Second)))
	all.Add(all, per).Sub(all, big.NewInt(1)).Div(all, per) // rounds up
	if !all.IsInt64() {
		return maxInteger
	}
	return min(all.Int64(), maxInteger)
}

// maxInteger is the largest Integer of a structured field (RFC 9651 §3.3.1).
const maxInteger = 999_999_999_999_999

// showItems adds an item for each rule that was asked, in their order, to those
// of Middlewares around this one.
func (n *node) showItems(h http.Header) {
	var policyRoom, limitRoom [512]byte
	policies, limits := policyRoom[:0], limitRoom[:0]
	hs, d := &n.set.headers, &n.decision
	for i := range d.Charges {
		c, r := &d.Charges[i], d.Results[i]
		if c.Policy == nil || c.Mode == store.Shadow || r.Limit == 0 || c.Mode == store.Strike && !r.Limited {
			continue
		}
		if len(policies) > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		it := hs.items[c.Policy]
		policies = append(policies, it.policy...)
		limits = append(limits, it.name...)
		limits = append(limits, ";r="...)
		limits = strconv.AppendInt(limits, min(r.Remaining, maxInteger), 10)
		if more := moreAfter(c.Policy, r); more > 0 {
			limits = append(limits, ";t="...)
			limits = strconv.AppendInt(limits, retrySeconds(more-n.held), 10)
		}
		if hs.hashers != nil {
			start := len(policies)
			policies = hs.appendPartition(policies, c)
			limits = append(limits, policies[start:]...)
		}
	}
	if len(policies) == 0 {
		return
	}
	// One string and one slice hold both values.
	all := string(append(policies, limits...))
	values := []string{all[:len(policies)], all[len(policies):]}
	add(h, "Ratelimit-Policy", values[0:1:1])
	add(h, "Ratelimit", values[1:2:2])
}

// cut is the longest ResetAfter that a result tells; what is longer is cut to it.
const cut = 1 << 53 * time.Microsecond

// moreAfter is the time after which more can be taken than now; 0 where nothing is
// taken. In a bucket that drains without steps it is when the next unit is back, and
// at most a tick later. What other algorithms give back when is not in a result:
// there it is when the same charge fits or, if that does now, when all is back:
// neither is sooner.
func moreAfter(p *algorithms.Policy, r algorithms.Result) time.Duration {
	taken := r.Limit - r.Remaining
	if taken <= 0 {
		return 0
	}
	after := r.ResetAfter
	if r.RetryAfter > 0 {
		after = r.RetryAfter
	}
	if _, steady := p.Turn(0, algorithms.Result{}); steady && r.ResetAfter < cut {
		after = min(after, r.ResetAfter-drainTime(p.Limit(), taken-1))
	}
	return max(after, 1)
}

// drainTime is how long so many units take to drain, rounded down.
func drainTime(l algorithms.Limit, units int64) time.Duration {
	hi, lo := bits.Mul64(uint64(units), uint64(l.Period))
	if l.Count < 1 || hi<<1|lo>>63 >= uint64(l.Count) {
		return 0 // it overflows: no bucket of this project's says that
	}
	t, _ := bits.Div64(hi, lo, uint64(l.Count))
	return time.Duration(t)
}

// hasher makes the values of "pk".
type hasher struct {
	mac hash.Hash
	buf []byte
}

// newHashers is a pool of hashers with secret, or nil without one.
func newHashers(secret []byte) *sync.Pool {
	if secret == nil {
		return nil
	}
	secret = slices.Clone(secret)
	return &sync.Pool{New: func() any { return &hasher{mac: hmac.New(sha256.New, secret)} }}
}

// appendPartition appends the parameter "pk": a keyed hash, as the key can be
// personal data.
func (hs *headers) appendPartition(dst []byte, c *store.Charge) []byte {
	h := hs.hashers.Get().(*hasher)
	h.buf = append(append(append(h.buf[:0], c.Policy.Name()...), 0), c.Key...)
	h.mac.Reset()
	h.mac.Write(h.buf)
	h.buf = h.mac.Sum(h.buf[:0])
	dst = base64.StdEncoding.AppendEncode(append(dst, ";pk=:"...), h.buf[:12])
	hs.hashers.Put(h)
	return append(dst, ':')
}
