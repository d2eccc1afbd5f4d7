package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/keyfunc/normalize"
)

func TestMap(t *testing.T) {
	f := keyfunc.Map(keyfunc.Header("X"), func(k string) string { return strings.Trim(strings.ToUpper(k), "-") })
	wantOf(t, f, request("/", "X: a-b-"), "A-B")
	wantOf(t, f, request("/", "X: --"), "") // no usable value
	wantOf(t, f, request("/"), "")

	// Without a key, there is nothing to change, and the error is the part's own.
	broken := errors.New("broken")
	for _, want := range []error{broken, keyfunc.ErrSkip, fmt.Errorf("%w: it", keyfunc.ErrNoKey)} {
		k, err := keyfunc.Map(fails(want), func(k string) string { t.Errorf("change(%q)", k); return "x" })(request("/"))
		if k != "" || err != want {
			t.Errorf("got %q, %v; want %v", k, err, want)
		}
	}
	empty := keyfunc.Map(fails(nil), func(k string) string { t.Errorf("change(%q)", k); return "x" })
	wantOf(t, empty, request("/"), "")
}

func TestMapMistakes(t *testing.T) {
	a, same := keyfunc.Const("a"), func(k string) string { return k }
	wantMistakes(t, keyfunc.Map(nil, same), "keyfunc.Map: f")
	wantMistakes(t, keyfunc.Map(a, nil), "keyfunc.Map: change")
	wantMistakes(t, keyfunc.Map(nil, nil), "keyfunc.Map: f", "keyfunc.Map: change")
	wantMistakes(t, keyfunc.Map(keyfunc.Header(""), nil), "keyfunc.Header: name", "keyfunc.Map: change")
	wantMistakes(t, keyfunc.Map(keyfunc.Join(), same), "keyfunc.Join: parts")
	wantMistakes(t, keyfunc.Map(a, same))
}

func TestOptional(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		f   keyfunc.Func
		key string
		err error
	}{
		{keyfunc.Const("a"), "a", nil},
		{fails(keyfunc.ErrNoKey), "", keyfunc.ErrSkip},
		{keyfunc.Header("X"), "", keyfunc.ErrSkip},
		{fails(nil), "", keyfunc.ErrSkip}, // an empty key
		{fails(keyfunc.ErrSkip), "", keyfunc.ErrSkip},
		{fails(broken), "", broken},
		{keyfunc.Join(keyfunc.Const("a"), keyfunc.Optional(keyfunc.Header("X"))), "", keyfunc.ErrSkip},
		{keyfunc.First(keyfunc.Header("X"), keyfunc.Const("a")), "1:a", nil}, // what every request has
	} {
		if k, err := keyfunc.Optional(tt.f)(request("/")); k != tt.key || err != tt.err {
			t.Errorf("got %q, %v; want %q, %v", k, err, tt.key, tt.err)
		}
	}
	wantMistakes(t, keyfunc.Optional(nil), "keyfunc.Optional: f")
	wantMistakes(t, keyfunc.Optional(keyfunc.Const("")), "keyfunc.Const: key")
	wantMistakes(t, keyfunc.Optional(keyfunc.Route))
}

func ExampleMap() {
	perName := keyfunc.Map(keyfunc.BasicUser, normalize.Fold) // as the look-up of the account does

	for _, name := range []string{"alice", "Alice ", "ALICE", "\u200b"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth(name, "a guess")
		fmt.Println(perName(r))
	}
	// Output:
	// alice <nil>
	// alice <nil>
	// alice <nil>
	//  weir: the request has no key: usable value
}

func ExampleOptional() {
	// A rule for those who come with a partner's name. Another must limit all.
	perPartner := keyfunc.Optional(keyfunc.Header("X-Partner"))

	r := httptest.NewRequest("GET", "/", nil)
	_, err := perPartner(r)
	fmt.Println(errors.Is(err, keyfunc.ErrSkip))

	r.Header.Set("X-Partner", "acme")
	fmt.Println(perPartner(r))
	// Output:
	// true
	// acme <nil>
}
