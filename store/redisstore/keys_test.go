package redisstore

import (
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

func charge(t testing.TB, policy, key string) *store.Charge {
	t.Helper()
	p, err := algorithms.NewPolicy(policy, algorithms.GCRA{}, algorithms.PerMinute(1))
	if err != nil {
		t.Fatal(err)
	}
	return &store.Charge{Policy: p, Key: key, Cost: 1}
}

func TestName(t *testing.T) {
	plain, tagged := &Store{prefix: "weir:"}, &Store{prefix: "shop/", tag: "limits"}
	for _, c := range []struct {
		s                 *Store
		policy, key, want string
	}{
		{plain, "phone-minute", "+12025550142", "weir:{+12025550142}:phone-minute:gcra"},
		{plain, "p", "2001:db8:1:2::/64", "weir:{2001:db8:1:2::/64}:p:gcra"},
		{plain, "p", "{user1}", "weir:{%7Buser1%7D}:p:gcra"},
		{plain, "p", "100%", "weir:{100%25}:p:gcra"},
		{plain, "p", "a\x00\xff\n", "weir:{a\x00\xff\n}:p:gcra"},
		{plain, "p", strings.Repeat("x", 256), "weir:{" + strings.Repeat("x", 256) + "}:p:gcra"},
		{tagged, "p", "a}b", "shop/{limits}:a%7Db:p:gcra"},
	} {
		if got := c.s.name(charge(t, c.policy, c.key)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	long := plain.name(charge(t, "p", strings.Repeat("x", 257)))
	if len(long) > 512 || !strings.HasPrefix(long, "weir:{%#") {
		t.Errorf("a long key is %q", long)
	}
	if other := plain.name(charge(t, "p", strings.Repeat("x", 256)+"y")); other == long {
		t.Error("two long keys have one name")
	}
}

// No two states have one name, whatever the keys hold, and the tag is the whole
// key's.
func FuzzName(f *testing.F) {
	f.Add("a", "p", "b", "p")
	f.Add("a}:p:gcra", "p", "a", "p")
	f.Add("%7B", "p", "{", "p")
	f.Add("%#00", "p", strings.Repeat("x", 300), "p")
	f.Fuzz(func(t *testing.T, key1, policy1, key2, policy2 string) {
		p1, err1 := algorithms.NewPolicy(policy1, algorithms.GCRA{}, algorithms.PerMinute(1))
		p2, err2 := algorithms.NewPolicy(policy2, algorithms.GCRA{}, algorithms.PerMinute(1))
		if err1 != nil || err2 != nil || key1 == "" || key2 == "" {
			return // no key, or no policy
		}
		for _, s := range []*Store{{prefix: "weir:"}, {prefix: "weir:", tag: "t"}} {
			a, b := s.name(&store.Charge{Policy: p1, Key: key1}), s.name(&store.Charge{Policy: p2, Key: key2})
			if (a == b) != (key1 == key2 && policy1 == policy2) {
				t.Errorf("%q %q and %q %q: %q and %q", key1, policy1, key2, policy2, a, b)
			}
			if (tagOf(a) == tagOf(b)) != (s.tag != "" || key1 == key2) {
				t.Errorf("%q and %q: tags of %q and %q", key1, key2, a, b)
			}
		}
	})
}

// tagOf is what Redis Cluster hashes: what stands between the first opening brace
// and the first closing one after it.
func tagOf(name string) string {
	_, rest, _ := strings.Cut(name, "{")
	tag, _, _ := strings.Cut(rest, "}")
	return tag
}

// A reply that is not the script's is an error, and no answer.
func TestDecideAgain(t *testing.T) {
	c := charge(t, "p", "k")
	for _, reply := range []string{"", "0", "1", "x 1", "0 x", "0 1 2 3 4 5 6 7 8 9 10 11 12", "0 1 x", "(nil)", "0  1", "0 1764000000000000 60000000 1764000000000000 60000000"} {
		if r, err := decideAgain(c, 1, reply); err == nil || r != (algorithms.Result{}) {
			t.Errorf("%q: %+v, %v", reply, r, err)
		}
	}
	r, err := decideAgain(c, 1, "0 1764000000000000")
	if err != nil || r.Limited || r.Limit != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = decideAgain(c, 1, "1 1764000000000000 60000000 1764000000000000 60000000")
	if err != nil || !r.Limited || r.RetryAfter.Seconds() != 60 {
		t.Errorf("%+v, %v", r, err)
	}
}
