package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func TestPrefixRun(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, c *storetest.Clock) store.Store {
		return store.Prefix(memstore.New(memstore.Config{Clock: c.Now}), "app")
	}, storetest.Options{})
}

// keys is a store that keeps the keys it is asked for.
type keys struct{ seen []string }

func (k *keys) Validate(...*algorithms.Policy) error { return nil }

func (k *keys) Take(_ context.Context, charges []store.Charge, _ []algorithms.Result) error {
	for _, c := range charges {
		k.seen = append(k.seen, c.Key)
	}
	return nil
}

func TestPrefixKeys(t *testing.T) {
	p, under := policy(t, "p"), &keys{}
	charges := []store.Charge{{Policy: p, Key: "k", Cost: 1}, {Policy: p, Key: "l:m", Cost: 1}}
	before := slices.Clone(charges)
	for _, s := range []store.Store{store.Prefix(under, "a"), store.Prefix(under, `t:\7`), store.Prefix(store.Prefix(under, "a"), "b")} {
		if err := s.Take(context.Background(), charges, make([]algorithms.Result, 2)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"a:k", "a:l:m", `t\:\\7:k`, `t\:\\7:l:m`, "a:b:k", "a:b:l:m"}; !slices.Equal(under.seen, want) {
		t.Errorf("keys %q, want %q", under.seen, want)
	}
	if !slices.Equal(charges, before) {
		t.Errorf("the caller's charges were changed: %+v", charges)
	}
}

// No key under one prefix is a key under another. All short texts of the bytes
// that matter are tried.
func TestPrefixInjective(t *testing.T) {
	texts := []string{""}
	for from, length := 0, 0; length < 3; length++ {
		for _, head := range texts[from:] {
			from++
			for _, c := range `a:\` {
				texts = append(texts, head+string(c))
			}
		}
	}
	p, under := policy(t, "p"), &keys{}
	from := map[string][2]string{}
	for _, prefix := range texts[1:] {
		s := store.Prefix(under, prefix)
		for _, key := range texts[1:] {
			if _, err := store.Take(context.Background(), s, p, key, 1); err != nil {
				t.Fatal(err)
			}
			got := under.seen[len(under.seen)-1]
			if other, ok := from[got]; ok {
				t.Fatalf("%q and %q: both give %q", [2]string{prefix, key}, other, got)
			}
			from[got] = [2]string{prefix, key}
		}
	}
}

func TestDecoratorMistakes(t *testing.T) {
	p := policy(t, "p")
	memory := memstore.New(memstore.Config{})
	for _, c := range []struct {
		name  string
		store store.Store
		want  string
	}{
		{"prefix of nil", store.Prefix(nil, "a"), "store.Prefix.s"},
		{"prefix of a nil pointer", store.Prefix((*memstore.Store)(nil), "a"), "store.Prefix.s"},
		{"empty prefix", store.Prefix(memory, ""), "store.Prefix.prefix"},
		{"sequential nil", store.Sequential(nil), "store.Sequential.s"},
		{"sequential nil pointer", store.Sequential((*memstore.Store)(nil)), "store.Sequential.s"},
	} {
		_, take := store.Take(context.Background(), c.store, p, "k", 1)
		group := c.store.Take(context.Background(), []store.Charge{{Policy: p, Key: "k"}, {Policy: p, Key: "l"}}, make([]algorithms.Result, 2))
		for what, err := range map[string]error{"Validate": c.store.Validate(p), "Validate of nothing": c.store.Validate(), "Take": take, "Take of two": group} {
			if mistake := (*algorithms.FieldError)(nil); !errors.As(err, &mistake) || mistake.Field != c.want {
				t.Errorf("%s: %s: %v, want a mistake in %s", c.name, what, err, c.want)
			}
		}
	}
	// What the store below says is passed on, with the mistake here.
	err := store.Prefix(memstore.New(memstore.Config{MaxKeys: -1}), "").Validate(p)
	if err == nil || !strings.Contains(err.Error(), "MaxKeys") || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("two mistakes: %v", err)
	}
}
