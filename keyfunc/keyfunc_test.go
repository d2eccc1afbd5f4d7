package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
)

// request is a GET of target with header lines such as "X-User-ID: u1".
func request(target string, lines ...string) *http.Request {
	r := httptest.NewRequest("GET", target, nil)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// from is a request from a peer.
func from(remote string, lines ...string) *http.Request {
	r := request("/", lines...)
	r.RemoteAddr = remote
	return r
}

// wantMistakes holds what Validate says of f, and what f says to any request, to
// one FieldError for each of fields.
func wantMistakes(t *testing.T, f keyfunc.Func, fields ...string) {
	t.Helper()
	err := keyfunc.Validate(f)
	var got []string
	for _, err := range flatten(err) {
		var fe *algorithms.FieldError
		if !errors.As(err, &fe) || fe.Reason == "" {
			t.Errorf("%v is no FieldError with a reason", err)
			continue
		}
		got = append(got, fe.Field)
	}
	if !slices.Equal(got, fields) {
		t.Errorf("mistakes in %q, want %q: %v", got, fields, err)
	}
	if f == nil || fields == nil {
		return
	}
	if k, ferr := f(request("/")); k != "" || ferr == nil || ferr.Error() != err.Error() || errors.Is(ferr, keyfunc.ErrNoKey) || errors.Is(ferr, keyfunc.ErrSkip) {
		t.Errorf("a request gets %q, %v; want %v", k, ferr, err)
	}
}

// flatten is the errors that err joins.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, err := range joined.Unwrap() {
		all = append(all, flatten(err)...)
	}
	return all
}

// fails is a Func that gives err.
func fails(err error) keyfunc.Func {
	return func(*http.Request) (string, error) { return "", err }
}

func TestConst(t *testing.T) {
	if k, err := keyfunc.Const("all")(request("/")); k != "all" || err != nil {
		t.Errorf("got %q, %v", k, err)
	}
	wantMistakes(t, keyfunc.Const(""), "keyfunc.Const: key")
}

// A Func of one's own: what it counts by, and when it doesn't apply.
func ExampleFunc() {
	tenant := func(r *http.Request) (string, error) {
		if r.Method == http.MethodOptions {
			return "", keyfunc.ErrSkip
		}
		name, _, ok := strings.Cut(r.Host, ".")
		if !ok {
			return "", keyfunc.ErrNoKey
		}
		return strings.ToLower(name), nil
	}
	r := httptest.NewRequest("GET", "http://Acme.example.com/", nil)
	fmt.Println(keyfunc.Join(keyfunc.Route, keyfunc.Func(tenant))(r))
	// Output: unmatched|acme <nil>
}
