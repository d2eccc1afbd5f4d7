package keyfunc_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/keyfunc"
)

// wantOf holds the key of r by f to want, or to ErrNoKey where want is empty.
func wantOf(t *testing.T, f keyfunc.Func, r *http.Request, want string) {
	t.Helper()
	k, err := f(r)
	if k != want || (want == "") != errors.Is(err, keyfunc.ErrNoKey) || want != "" && err != nil {
		t.Errorf("got %q, %v; want %q", k, err, want)
	}
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
		wantOf(t, keyfunc.Header(tt.name), request("/", tt.lines...), tt.want)
	}
	r := request("/")
	r.Host = ""
	wantOf(t, keyfunc.Header("Host"), r, "")
	wantMistakes(t, keyfunc.Header(""), "keyfunc.Header: name")
	wantMistakes(t, keyfunc.Header("X-User-ID"))
}

func TestCookie(t *testing.T) {
	for line, want := range map[string]string{
		"id=u1":             "u1",
		"a=1; id=u1; id=u2": "u1",
		"id=a b|c":          "a b|c",
		`id="u1"`:           "u1",
		"a=1; ID=u1":        "",
		"id=":               "",
		"id=; id=u2":        "", // the handler sees none either
		`id="  "`:           "",
		"idx=1":             "",
		"id":                "",
	} {
		r := request("/", "Cookie: "+line)
		wantOf(t, keyfunc.Cookie("id"), r, want)
		if c, err := r.Cookie("id"); err == nil && want != "" && c.Value != want {
			t.Errorf("%q: the handler sees %q", line, c.Value)
		}
	}
	wantOf(t, keyfunc.Cookie("id"), request("/", "Cookie: a=1", "Cookie: id=u2"), "u2")
	wantOf(t, keyfunc.Cookie("id"), request("/"), "")
	wantMistakes(t, keyfunc.Cookie(""), "keyfunc.Cookie: name")
	wantMistakes(t, keyfunc.Cookie("id"))
}

func TestQuery(t *testing.T) {
	for query, want := range map[string]string{
		"phone=%2B12025550142":      "+12025550142",
		"phone=+a|b+":               " a|b ", // verbatim
		"a=1&phone=1&z=9&phon=2":    "1",
		"z=9&a=1&phone=1":           "1",
		"phone=%31":                 "1",
		"p%68one=1":                 "1",
		"phone=%FF%00":              "\xff\x00",
		"phone=1&PHONE=2":           "1",
		"phone=1&phone=1":           "",
		"phone=1&phone=":            "",
		"phone&phone=1":             "",
		"phone=1&p%68one=2":         "",
		"phone=1&a=2&a=3&phone=%32": "",
		"phone=":                    "",
		"phone":                     "",
		"phone=%20%09%C2%A0":        "",
		"PHONE=1":                   "",
		"phone=%zz":                 "", // neither this nor the next is in URL.Query
		"phone=1;a=2":               "",
		"":                          "",
	} {
		wantOf(t, keyfunc.Query("phone"), request("/?"+query), want)
	}
	wantMistakes(t, keyfunc.Query(""), "keyfunc.Query: name")
	wantMistakes(t, keyfunc.Query("phone"))
}

func TestPathValue(t *testing.T) {
	var want string
	f := keyfunc.PathValue("id")
	asks := func(_ http.ResponseWriter, r *http.Request) { wantOf(t, f, r, want) }
	mux := http.NewServeMux()
	mux.HandleFunc("/orders/{id}", asks)
	mux.HandleFunc("/all/{id...}", asks)
	mux.HandleFunc("/other/{name}", asks)
	for target, id := range map[string]string{
		"/orders/A%2f1": "A/1", "/orders/a%2F1": "a/1", "/orders/%20": " ",
		"/all/1/2": "1/2", "/all/": "", "/other/1": "",
	} {
		want = id
		mux.ServeHTTP(httptest.NewRecorder(), request(target))
	}
	r := request("/orders/1")
	wantOf(t, f, r, "") // outside the mux
	r.SetPathValue("id", "u1")
	wantOf(t, f, r, "u1") // as an adapter does
	wantMistakes(t, keyfunc.PathValue(""), "keyfunc.PathValue: name")
	wantMistakes(t, f)
}

func TestBasicUser(t *testing.T) {
	for _, tt := range []struct{ user, password, want string }{
		{"alice", "x", "alice"}, {"alice", "", "alice"}, {"Alice ", "x", "Alice "},
		{"", "x", ""}, {" \t", "x", ""},
	} {
		r := request("/")
		r.SetBasicAuth(tt.user, tt.password)
		wantOf(t, keyfunc.BasicUser, r, tt.want)
	}
	for _, line := range []string{"", "Bearer YWxpY2U6eA==", "Basic YWxpY2U=", "Basic ?", "YWxpY2U6eA=="} {
		wantOf(t, keyfunc.BasicUser, request("/", "Authorization: "+line), "")
	}
	wantOf(t, keyfunc.BasicUser, request("/"), "")
	wantOf(t, keyfunc.BasicUser, request("/", "Authorization: basic YWxpY2U6eDp5"), "alice") // alice:x:y
}

func TestMethod(t *testing.T) {
	for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"} {
		wantOf(t, keyfunc.Method, &http.Request{Method: m}, m)
	}
	for _, m := range []string{"HEAD", ""} { // a client's request may have none
		wantOf(t, keyfunc.Method, &http.Request{Method: m}, "GET")
	}
	for _, m := range []string{"get", "PROPFIND", "FOO1", "other", "GET "} {
		wantOf(t, keyfunc.Method, &http.Request{Method: m}, "other")
	}
}

func TestHost(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "example.com", "EXAMPLE.com": "example.com", "example.com:8080": "example.com",
		"example.com.": "example.com", "Example.Com.:80": "example.com", "example.com:": "example.com",
		"203.0.113.7": "203.0.113.7", "203.0.113.7:80": "203.0.113.7", "localhost": "localhost",
		"[2001:DB8::1]": "[2001:db8::1]", "[2001:db8::1]:80": "[2001:db8::1]", "[2001:db8::1]:": "[2001:db8::1]",
		"2001:db8::1": "2001:db8::1", "2001:db8::2": "2001:db8::2", // without brackets the last is no port
		"": "", ":80": "", ".": "", ".:80": "", " ": "",
	} {
		wantOf(t, keyfunc.Host, &http.Request{Host: host}, want)
	}
}

// FuzzHost holds the spellings of one host to one key, and hosts apart.
func FuzzHost(f *testing.F) {
	for _, h := range []string{"example.com", "Example.COM:8080", "a.b.", "[2001:DB8::1]:443", "2001:db8::1", ":80", "..", "x_1-", "K\u212a\xff"} {
		f.Add(h, uint16(8080))
	}
	f.Fuzz(func(t *testing.T, host string, port uint16) {
		key := func(host string) string {
			t.Helper()
			k, err := keyfunc.Host(&http.Request{Host: host})
			if (k == "") != errors.Is(err, keyfunc.ErrNoKey) || k != "" && err != nil {
				t.Fatalf("%q: got %q, %v", host, k, err)
			}
			return k
		}
		k := key(host)
		if k != strings.ToLower(k) {
			t.Fatalf("%q: got %q, which is not in lower case", host, k)
		}
		name := strings.Trim(host, ".")
		switch addr, err := netip.ParseAddr(strings.Trim(host, "[]")); {
		case err == nil && addr.Is6():
			name = "[" + addr.WithZone("").String() + "]"
		case name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "":
			return // what else is a host is for others to say
		}
		want := strings.ToLower(name)
		withPort := fmt.Sprintf(":%d", port)
		spellings := []string{name, strings.ToUpper(name), name + withPort, strings.ToUpper(name) + withPort, name + ":"}
		if name[0] != '[' {
			spellings = append(spellings, name+".", name+"."+withPort)
		}
		for _, s := range spellings {
			if k := key(s); k != want {
				t.Fatalf("%q: got %q, want %q", s, k, want)
			}
		}
	})
}

type (
	userKey struct{}
	account string
	shown   string // shows less than it holds
	number  int64
	level   uint8
	point   struct{ x, y int }
)

func (shown) String() string    { return "***" }
func (level) String() string    { return "high" }
func (p *point) String() string { return fmt.Sprintf("%d,%d", p.x, p.y) }

func TestContext(t *testing.T) {
	f := keyfunc.Context(userKey{})
	for _, tt := range []struct {
		value any
		want  string
	}{
		{"u1", "u1"}, {" a|b", " a|b"}, {account("u1"), "u1"},
		{42, "42"}, {int8(-42), "-42"}, {number(1 << 62), "4611686018427387904"},
		{uint(42), "42"}, {uint64(1<<64 - 1), "18446744073709551615"}, {time.Second, "1000000000"},
		{0, "0"},
		// Its own text first, and what it shows only if there is none.
		{shown("u1"), "u1"}, {level(3), "3"},
		{netip.MustParseAddr("203.0.113.7"), "203.0.113.7"}, {&point{1, 2}, "1,2"}, {big.NewInt(7), "7"},
		{nil, ""}, {"", ""}, {account(""), ""}, {shown(""), ""}, {&strings.Builder{}, ""},
		{(*point)(nil), ""}, {(*big.Int)(nil), ""}, {fmt.Stringer(nil), ""}, {(*int)(nil), ""},
	} {
		r := request("/")
		wantOf(t, f, r.WithContext(context.WithValue(r.Context(), userKey{}, tt.value)), tt.want)
	}
	wantOf(t, f, request("/"), "")
	other := context.WithValue(context.Background(), struct{ userKey }{}, "u1")
	wantOf(t, f, request("/").WithContext(other), "")

	for _, value := range []any{true, 1.5, struct{ Name string }{"secret"}, []byte("secret"), point{1, 2}, new(string), errors.New("secret")} {
		r := request("/")
		k, err := f(r.WithContext(context.WithValue(r.Context(), userKey{}, value)))
		if k != "" || err == nil || errors.Is(err, keyfunc.ErrNoKey) || errors.Is(err, keyfunc.ErrSkip) {
			t.Errorf("%T: got %q, %v; want a failure", value, k, err)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("%T", value)) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%T: the failure is %q", value, err)
		}
	}
	wantMistakes(t, keyfunc.Context(nil), "keyfunc.Context: key")
	wantMistakes(t, f)
}

func TestErrorsNameWhatIsMissing(t *testing.T) {
	anything := keyfunc.Const("secret")
	tests := []struct {
		f    keyfunc.Func
		want string
	}{
		{keyfunc.Header("X-User-ID"), "header X-User-ID"},
		{keyfunc.Header("x-user-id"), "header x-user-id"},
		{keyfunc.Cookie("id"), "cookie id"},
		{keyfunc.Query("phone"), "query parameter phone"},
		{keyfunc.PathValue("id"), "path value id"},
		{keyfunc.BasicUser, "user of HTTP basic authentication"},
		{keyfunc.Host, "host"},
		{keyfunc.Context(userKey{}), "context value keyfunc_test.userKey"},
		{keyfunc.IP(keyfunc.Trust{}), "client address"},
		{keyfunc.Map(anything, func(string) string { return "" }), "usable value"},
	}
	for _, tt := range tests {
		r := from("secret-peer", "X-User-ID:  ")
		r.Host = ""
		_, err := tt.f(r)
		if err == nil || err.Error() != keyfunc.ErrNoKey.Error()+": "+tt.want {
			t.Errorf("got %v; want ErrNoKey and %q", err, tt.want)
		}
		if n := testing.AllocsPerRun(100, func() { tt.f(r) }); n > 0 && tt.want != "client address" {
			t.Errorf("%s: %v allocations for a request without a key", tt.want, n)
		}
		// What is made of it adds none.
		join, first, optional := keyfunc.Join(anything, tt.f), keyfunc.First(tt.f, tt.f), keyfunc.Optional(tt.f)
		if n := testing.AllocsPerRun(100, func() { join(r); first(r); optional(r) }); n > 0 && tt.want != "client address" {
			t.Errorf("parts without %s: %v allocations", tt.want, n)
		}
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

func ExampleContext() {
	type accountKey struct{}
	authenticate := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := 4711 // whose token it is
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, id)))
		})
	}
	perAccount := keyfunc.Context(accountKey{})

	limited := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println(perAccount(r)) })
	authenticate(limited).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	// Output: 4711 <nil>
}
