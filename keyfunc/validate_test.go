package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
)

// TestValidateGoesThrough holds each function that takes Funcs to pass on the
// mistakes of its parts, through any number of others.
func TestValidateGoesThrough(t *testing.T) {
	secret := make([]byte, 16)
	same := func(k string) string { return k }
	wraps := map[string]func(keyfunc.Func) keyfunc.Func{
		"Join":     func(f keyfunc.Func) keyfunc.Func { return keyfunc.Join(f, keyfunc.Route) },
		"First":    func(f keyfunc.Func) keyfunc.Func { return keyfunc.First(keyfunc.Route, f) },
		"Map":      func(f keyfunc.Func) keyfunc.Func { return keyfunc.Map(f, same) },
		"Optional": keyfunc.Optional,
		"HMAC":     func(f keyfunc.Func) keyfunc.Func { return keyfunc.HMAC(secret, f) },
	}
	for outer, wrap := range wraps {
		wantMistakes(t, wrap(keyfunc.Route))
		for inner, f := range wraps {
			t.Run(outer+" of "+inner, func(t *testing.T) {
				wantMistakes(t, wrap(f(keyfunc.Header(""))), "keyfunc.Header: name")
				wantMistakes(t, wrap(f(keyfunc.Join(nil, keyfunc.Const("")))), "keyfunc.Join: parts[0]", "keyfunc.Const: key")
				wantMistakes(t, wrap(f(keyfunc.Route)))
			})
		}
	}
}

// A Func that is no mistake is not called, as it may need a request.
func TestValidateCallsNone(t *testing.T) {
	for name, f := range map[string]keyfunc.Func{
		"Const": keyfunc.Const("a"), "Header": keyfunc.Header("X"), "Cookie": keyfunc.Cookie("c"),
		"Query": keyfunc.Query("q"), "PathValue": keyfunc.PathValue("p"), "BasicUser": keyfunc.BasicUser,
		"Method": keyfunc.Method, "Host": keyfunc.Host, "Context": keyfunc.Context(userKey{}),
		"Route": keyfunc.Route, "RouteOf": keyfunc.RouteOf(http.NewServeMux()),
		"IP": keyfunc.IP(keyfunc.Trust{}), "JSON": keyfunc.JSON("a"), "Form": keyfunc.Form("a"),
		"Join": keyfunc.Join(fails(nil)), "First": keyfunc.First(fails(nil)), "Optional": keyfunc.Optional(fails(nil)),
		"one's own": func(r *http.Request) (string, error) { return r.Host, errors.New("x") },
	} {
		if err := keyfunc.Validate(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a Func of one's own is made from, only its requests find out.
func TestValidateSeesNoOwnFunc(t *testing.T) {
	inner := keyfunc.Header("")
	own := func(r *http.Request) (string, error) { return inner(r) }
	wantMistakes(t, own)
	_, want := inner(request("/"))
	if k, err := own(request("/")); k != "" || err == nil || err != want {
		t.Errorf("got %q, %v; want %v", k, err, want)
	}
}

func TestMistakesSayWhatStandsThere(t *testing.T) {
	for _, tt := range []struct {
		f     keyfunc.Func
		value any
		text  string
	}{
		{keyfunc.Header(""), "", `weir: keyfunc.Header: name = "": must not be empty`},
		{keyfunc.HMAC(make([]byte, 3), keyfunc.Route), 3, "weir: keyfunc.HMAC: len(secret) = 3: must be at least 16 bytes, from crypto/rand"},
		{keyfunc.Context(nil), nil, "weir: keyfunc.Context: key = <nil>: must not be nil"},
		{nil, nil, "weir: keyfunc.Func = <nil>: is nil"},
	} {
		err := keyfunc.Validate(tt.f)
		var fe *algorithms.FieldError
		if !errors.As(err, &fe) || fe.Value != tt.value || err.Error() != tt.text {
			t.Errorf("got %v, want %s", err, tt.text)
		}
	}
}

func ExampleValidate() {
	perAccount := keyfunc.First(
		keyfunc.HMAC([]byte("secret"), keyfunc.Context(nil)),
		nil,
	)
	fmt.Println(keyfunc.Validate(perAccount)) // as middleware.New does
	// Output:
	// weir: keyfunc.HMAC: len(secret) = 6: must be at least 16 bytes, from crypto/rand
	// weir: keyfunc.Context: key = <nil>: must not be nil
	// weir: keyfunc.First: parts[1] = <nil>: is nil
}
