package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// consts are Funcs that give the keys, also those that are none.
func consts(keys ...string) []keyfunc.Func {
	var fs []keyfunc.Func
	for _, k := range keys {
		fs = append(fs, func(*http.Request) (string, error) { return k, nil })
	}
	return fs
}

func TestJoin(t *testing.T) {
	tests := []struct {
		keys []string
		want string // empty: ErrNoKey
	}{
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a|b"},
		{[]string{"GET /orders/{id}", "203.0.113.7"}, "GET /orders/{id}|203.0.113.7"},
		{[]string{"a|b"}, `a\|b`},
		{[]string{`a\`, "b"}, `a\\|b`},
		{[]string{`a\|b`}, `a\\\|b`},
		{[]string{"|", `\`}, `\||\\`},
		{[]string{"é|世", "\xff|"}, "é\\|世|\xff\\|"},
		{strings.Split("abcdefghij", ""), "a|b|c|d|e|f|g|h|i|j"},
		{[]string{""}, ""},
		{[]string{"a", ""}, ""},
		{[]string{"", "a"}, ""},
	}
	for _, tt := range tests {
		k, err := keyfunc.Join(consts(tt.keys...)...)(request("/"))
		if k != tt.want || (tt.want == "") != errors.Is(err, keyfunc.ErrNoKey) || tt.want != "" && err != nil {
			t.Errorf("Join of %q: got %q, %v; want %q", tt.keys, k, err, tt.want)
		}
	}
}

func TestJoinOfJoin(t *testing.T) {
	c := keyfunc.Const
	flat, _ := keyfunc.Join(c("a"), c("b"), c("c"))(request("/"))
	left, _ := keyfunc.Join(keyfunc.Join(c("a"), c("b")), c("c"))(request("/"))
	right, _ := keyfunc.Join(c("a"), keyfunc.Join(c("b"), c("c")))(request("/"))
	if flat == left || left == right || flat == right {
		t.Errorf("equal keys: %q, %q, %q", flat, left, right)
	}
}

func TestPartErrors(t *testing.T) {
	broken := errors.New("broken")
	empty := fails(nil) // an empty key without an error
	missing := fails(fmt.Errorf("%w: header X", keyfunc.ErrNoKey))
	a := keyfunc.Const("a")
	tests := []struct {
		name string
		f    keyfunc.Func
		key  string
		err  error
	}{
		{"Join skips", keyfunc.Join(a, fails(keyfunc.ErrSkip)), "", keyfunc.ErrSkip},
		{"Join breaks", keyfunc.Join(a, fails(broken)), "", broken},
		{"Join empty", keyfunc.Join(a, empty), "", keyfunc.ErrNoKey},
		{"Join in order", keyfunc.Join(missing, fails(broken)), "", keyfunc.ErrNoKey},
		{"First alone", keyfunc.First(a), "0:a", nil},
		{"First of two", keyfunc.First(a, fails(broken)), "0:a", nil},
		{"First skips", keyfunc.First(missing, fails(keyfunc.ErrSkip), a), "", keyfunc.ErrSkip},
		{"First breaks", keyfunc.First(fails(broken), a), "", broken},
		{"First wrapped", keyfunc.First(missing, a), "1:a", nil},
		{"First empty", keyfunc.First(empty, a), "1:a", nil},
		{"First without", keyfunc.First(missing, empty), "", keyfunc.ErrNoKey},
	}
	for _, tt := range tests {
		if k, err := tt.f(request("/")); k != tt.key || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %q, %v; want %q, %v", tt.name, k, err, tt.key, tt.err)
		}
	}
	// As it is, not only the same kind: the words say what is missing.
	if _, err := keyfunc.Join(a, keyfunc.Header("X"))(request("/")); err == nil || !strings.HasSuffix(err.Error(), "header X") {
		t.Errorf("Join: %v; want the part's own error", err)
	}
}

func TestMistakenParts(t *testing.T) {
	a, none := keyfunc.Const("a"), keyfunc.Const("")
	wantMistakes(t, keyfunc.Join(a, a, nil), "keyfunc.Join: parts[2]")
	wantMistakes(t, keyfunc.Join(nil, a, nil), "keyfunc.Join: parts[0]", "keyfunc.Join: parts[2]")
	wantMistakes(t, keyfunc.Join(), "keyfunc.Join: parts")
	wantMistakes(t, keyfunc.First(), "keyfunc.First: parts")
	wantMistakes(t, keyfunc.First(a, nil), "keyfunc.First: parts[1]") // though part 0 has a key
	wantMistakes(t, keyfunc.Join(none, keyfunc.First(a, none), nil),
		"keyfunc.Const: key", "keyfunc.Const: key", "keyfunc.Join: parts[2]")
	wantMistakes(t, nil, "keyfunc.Func")
	wantMistakes(t, keyfunc.Join(a, keyfunc.Route))
	wantMistakes(t, fails(errors.New("a failure is no mistake")))
}

func TestPartsAreCopied(t *testing.T) {
	parts := consts("a", "b")
	join, first := keyfunc.Join(parts...), keyfunc.First(parts...)
	parts[0] = nil
	if k, err := join(request("/")); k != "a|b" {
		t.Errorf("Join: got %q, %v", k, err)
	}
	if k, err := first(request("/")); k != "0:a" {
		t.Errorf("First: got %q, %v", k, err)
	}
}

func TestJoinAllocatesOnce(t *testing.T) {
	r := request("/")
	for _, keys := range [][]string{{"tenant", "user", "203.0.113.7"}, {"a|b", `c\`}} {
		f := keyfunc.Join(consts(keys...)...)
		if n := testing.AllocsPerRun(100, func() { f(r) }); n > 1 {
			t.Errorf("%q: %v allocations, want 1", keys, n)
		}
	}
	f := keyfunc.First(consts("", "203.0.113.7")...)
	if n := testing.AllocsPerRun(100, func() { f(r) }); n > 1 {
		t.Errorf("First: %v allocations, want 1", n)
	}
}

// split undoes Join. That it can be undone is that no two lists make one key.
func split(key string) []string {
	var parts []string
	var part []byte
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '\\':
			i++
			part = append(part, key[i])
		case '|':
			parts, part = append(parts, string(part)), nil
		default:
			part = append(part, key[i])
		}
	}
	return append(parts, string(part))
}

func FuzzJoinInjective(f *testing.F) {
	f.Add("21", "1", "2", "11")
	f.Add("a|b", "c", "a", "b|c")
	f.Add(`a\`, "|b", `a\|`, "b")
	f.Add(`\`, `\\`, `\\`, `\`)
	f.Add("", "a", "a", "")
	f.Add("\xff|", "世", "\xff", "|世")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		lists := [][]string{{a}, {b}, {a, b}, {c, d}, {a, b, c}, {b, c, d}, {a, b, c, d}}
		keys := make([]string, len(lists))
		for i, list := range lists {
			k, err := keyfunc.Join(consts(list...)...)(request("/"))
			if slices.Contains(list, "") {
				if !errors.Is(err, keyfunc.ErrNoKey) {
					t.Fatalf("%q: got %q, %v; want ErrNoKey", list, k, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := split(k); !slices.Equal(got, list) {
				t.Fatalf("%q made %q, which reads %q", list, k, got)
			}
			keys[i] = k
		}
		for i := range lists {
			for j := range i {
				if keys[i] != "" && keys[i] == keys[j] && !slices.Equal(lists[i], lists[j]) {
					t.Fatalf("%q and %q both make %q", lists[i], lists[j], keys[i])
				}
			}
		}
		one, err1 := keyfunc.First(consts(a, b)...)(request("/"))
		two, err2 := keyfunc.First(consts("", a)...)(request("/"))
		if err1 == nil && err2 == nil && a != "" && one == two {
			t.Fatalf("First: places 0 and 1 both make %q", one)
		}
	})
}

func ExampleJoin() {
	perTenantAndUser := keyfunc.Join(keyfunc.Header("X-Tenant"), keyfunc.Header("X-User"))

	for _, pair := range [][2]string{{"21", "1"}, {"2", "11"}, {"a|b", "c"}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Tenant", pair[0])
		r.Header.Set("X-User", pair[1])
		key, err := perTenantAndUser(r)
		fmt.Println(key, err)
	}
	// Output:
	// 21|1 <nil>
	// 2|11 <nil>
	// a\|b|c <nil>
}

func ExampleFirst() {
	userOrAddress := keyfunc.First(keyfunc.Header("X-User-ID"), keyfunc.IP(keyfunc.Trust{}))

	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "203.0.113.7:1234"
	fmt.Println(userOrAddress(r))

	r.Header.Set("X-User-ID", "u1")
	fmt.Println(userOrAddress(r))
	// Output:
	// 1:203.0.113.7 <nil>
	// 0:u1 <nil>
}
