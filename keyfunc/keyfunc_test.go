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

func TestHeader(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  string // empty: ErrNoKey
	}{
		{"X-User-ID", []string{"X-User-ID: u1"}, "u1"},
		{"x-user-id", []string{"X-USER-ID: u1"}, "u1"},
		{"X-User-ID", []string{"X-User-ID:  U1 a|b"}, " U1 a|b"}, // verbatim
		{"X-User-ID", []string{"X-User-ID: u1", "X-User-ID: u2"}, "u1"},
		{"X-User-ID", []string{"X-User-ID: ", "X-User-ID: u2"}, ""}, // the handler sees none either
		{"X-User-ID", nil, ""},
		{"X-User-ID", []string{"X-User-ID: "}, ""},
		{"X-User-ID", []string{"X-User-ID:  \t\u00a0"}, ""},
		{"X-User-ID", []string{"X-User: u1"}, ""},
		{"Host", []string{"Host: forged.example"}, "example.com"},
		{"host", nil, "example.com"},
	}
	for _, tt := range tests {
		k, err := keyfunc.Header(tt.name)(request("/", tt.lines...))
		if k != tt.want || (tt.want == "") != errors.Is(err, keyfunc.ErrNoKey) || tt.want != "" && err != nil {
			t.Errorf("Header(%q) of %q: got %q, %v; want %q", tt.name, tt.lines, k, err, tt.want)
		}
	}
	r := request("/")
	r.Host = ""
	if k, err := keyfunc.Header("Host")(r); !errors.Is(err, keyfunc.ErrNoKey) {
		t.Errorf("without a Host: got %q, %v; want ErrNoKey", k, err)
	}
}

func TestErrorsNameWhatIsMissing(t *testing.T) {
	tests := []struct {
		f    keyfunc.Func
		want string
	}{
		{keyfunc.Header("X-User-ID"), "header X-User-ID"},
		{keyfunc.PathValue("id"), "path value id"},
		{keyfunc.IP(keyfunc.Trust{}), "client address"},
	}
	for _, tt := range tests {
		r := from("secret-peer", "X-User-ID:  ")
		_, err := tt.f(r)
		if err == nil || err.Error() != keyfunc.ErrNoKey.Error()+": "+tt.want {
			t.Errorf("got %v; want ErrNoKey and %q", err, tt.want)
		}
		if n := testing.AllocsPerRun(100, func() { tt.f(r) }); n > 0 && tt.want != "client address" {
			t.Errorf("%s: %v allocations for a request without a key", tt.want, n)
		}
	}
}

func TestPathValue(t *testing.T) {
	var got string
	var err error
	f := keyfunc.PathValue("id")
	mux := http.NewServeMux()
	mux.HandleFunc("/orders/{id}", func(_ http.ResponseWriter, r *http.Request) { got, err = f(r) })
	mux.HandleFunc("/other/{name}", func(_ http.ResponseWriter, r *http.Request) { got, err = f(r) })

	mux.ServeHTTP(httptest.NewRecorder(), request("/orders/A%2f1"))
	if got != "A/1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	mux.ServeHTTP(httptest.NewRecorder(), request("/other/1"))
	if !errors.Is(err, keyfunc.ErrNoKey) {
		t.Errorf("of another name: got %q, %v; want ErrNoKey", got, err)
	}
	if _, err := f(request("/orders/1")); !errors.Is(err, keyfunc.ErrNoKey) {
		t.Errorf("outside the mux: %v; want ErrNoKey", err)
	}
}

func TestRoute(t *testing.T) {
	var _ keyfunc.Func = keyfunc.Route
	var got []string
	limited := func(w http.ResponseWriter, r *http.Request) {
		k, err := keyfunc.Route(r)
		if err != nil {
			t.Error(err)
		}
		got = append(got, k)
	}
	inner := http.NewServeMux()
	inner.HandleFunc("/report", limited)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", limited)
	mux.HandleFunc("POST /report", limited)
	mux.HandleFunc("/orders/{id}", limited)
	mux.Handle("/v1/", http.StripPrefix("/v1", inner))
	for _, rq := range [][2]string{
		{"GET", "/report"}, {"HEAD", "/report"}, {"POST", "/report"},
		{"GET", "/orders/1"}, {"PUT", "/orders/2"}, {"GET", "/v1/report"},
	} {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(rq[0], rq[1], nil))
	}
	want := []string{
		"GET /report", "GET /report", "POST /report",
		"/orders/{id}", "/orders/{id}", "/report",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if k, err := keyfunc.Route(request("/report")); k != "unmatched" || err != nil {
		t.Errorf("outside the mux: got %q, %v", k, err)
	}
}

func ExampleHeader() {
	perUser := keyfunc.Header("X-User-ID") // set by the gateway that has authenticated the caller

	r := httptest.NewRequest("GET", "/", nil)
	_, err := perUser(r)
	fmt.Println(errors.Is(err, keyfunc.ErrNoKey), err)

	r.Header.Set("X-User-ID", "u1")
	fmt.Println(perUser(r))
	// Output:
	// true weir: the request has no key: header X-User-ID
	// u1 <nil>
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
