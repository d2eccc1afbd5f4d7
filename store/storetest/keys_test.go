package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// rename charges under another key than the one that is asked for.
func rename(change func(key string) string) takeFunc {
	return each(func(c store.Charge) store.Charge {
		if c.Key != "" {
			c.Key = "-" + change(c.Key)
		}
		return c
	})
}

// keyMistakes are those with keys that are not of a few letters.
var keyMistakes = []mistake{
	{9, "long keys are cut", rename(func(key string) string { return key[:min(len(key), 256)] })},
	{9, "of long keys the end counts", rename(func(key string) string { return key[max(0, len(key)-1000):] })},
	{9, "long keys are known by a hash that can be written out", rename(func(key string) string {
		if len(key) > 256 {
			sum := sha256.Sum256([]byte(key))
			return hex.EncodeToString(sum[:])
		}
		return key
	})},
	{9, "a NUL ends a key", rename(func(key string) string { key, _, _ = strings.Cut(key, "\x00"); return key })},
	{9, "what is no UTF-8 is replaced", rename(func(key string) string { return strings.ToValidUTF8(key, "\ufffd") })},
	{9, "white space is trimmed", rename(strings.TrimSpace)},
	{9, "lines end alike", rename(func(key string) string { return strings.ReplaceAll(key, "\r\n", "\n") })},
	{9, "escapes are read", rename(func(key string) string {
		if plain, err := url.PathUnescape(key); err == nil {
			return plain
		}
		return key
	})},
	{9, "braces are escaped, and escapes are not", rename(func(key string) string {
		return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(key)
	})},
	{9, "what is in braces is the key", rename(func(key string) string {
		if _, rest, ok := strings.Cut(key, "{"); ok {
			if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
				return tag
			}
		}
		return key
	})},
	{9, "policies stand before keys", each(func(c store.Charge) store.Charge {
		if c.Policy != nil {
			c.Key, _ = strings.CutSuffix(c.Key, ":"+c.Policy.ID())
		}
		return c
	})},
	{9, "long keys are not found again", func(m *safeModel, ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
		changed := slices.Clone(charges)
		for i := range changed {
			if len(changed[i].Key) >= mebibyte {
				changed[i].Key += strings.Repeat("+", len(m.keys))
			}
		}
		return m.Take(ctx, changed, results)
	}},
}

// boundMistakes are those with numbers at their bounds.
var boundMistakes = []mistake{
	{2, "costs are cut to 32 bits", each(func(c store.Charge) store.Charge {
		c.Cost = max(math.MinInt32, min(math.MaxInt32, c.Cost))
		return c
	})},
	{2, "costs are doubles", each(func(c store.Charge) store.Charge {
		if c.Cost > 1<<53 && c.Cost < math.MaxInt64-1000 {
			c.Cost = int64(float64(c.Cost))
		}
		return c
	})},
	{2, "what is given back is negated first", each(func(c store.Charge) store.Charge {
		if c.Cost == math.MinInt64 {
			c.Cost = 0
		}
		return c
	})},
	{2, "ages end at a century", each(func(c store.Charge) store.Charge {
		c.Age = min(c.Age, math.MaxInt64/3)
		return c
	})},
	{2, "long waits wrap", after(func(_ []store.Charge, results []algorithms.Result) {
		for i := range results {
			if results[i].ResetAfter > math.MaxInt64/2 {
				results[i].ResetAfter *= 2
			}
		}
	})},
}

// The keys are all different, or a store would fail that is right.
func TestOddKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range oddKeys("p:gcra") {
		if seen[key] || key == "" {
			t.Errorf("%.100q, twice or empty", key)
		}
		seen[key] = true
	}
}

// A store whose Validate refuses a limit must not charge it.
func TestRefusedLimitsAreNotCharged(t *testing.T) {
	for name, broken := range map[string]bool{"sound": false, "broken": true} {
		clock := NewClock()
		s := &picky{safeModel: safeModel{model: newModel(clock)}, charges: broken}
		said := record(func(r reporter) {
			(&fixture{reporter: r, o: Options{Steps: 300, Seed: 42}, a: algorithms.GCRA{}, clock: clock, store: s}).checkBounds()
		})
		if said.broke("sentence 11") != broken || !broken && len(said.said) > 0 {
			t.Errorf("%s: this was said:\n%s", name, said.summary())
		}
	}
}

// picky is a model that takes no limit of a Count above 1, and charges it or not.
type picky struct {
	safeModel
	charges bool
}

func (*picky) Validate(policies ...*algorithms.Policy) error {
	for _, p := range policies {
		if p.Limit().Count > 1 {
			return &algorithms.FieldError{Field: "Limit.Count", Value: p.Limit().Count, Reason: "is too much"}
		}
	}
	return nil
}

func (p *picky) Take(ctx context.Context, charges []store.Charge, results []algorithms.Result) error {
	for _, c := range charges {
		if err := p.Validate(c.Policy); err != nil && !p.charges {
			return err
		}
	}
	return p.safeModel.Take(ctx, charges, results)
}
