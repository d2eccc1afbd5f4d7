package keyfunc_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// hashOf is what HMAC says that it is.
func hashOf(secret, value string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(value))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestHMAC(t *testing.T) {
	const secret = "0123456789abcdef" // no shorter one is taken
	f := keyfunc.HMAC([]byte(secret), keyfunc.Header("X"))
	for range 2 { // what it keeps from one request must not reach the next
		for _, v := range []string{"a", "b", "+12025550142", strings.Repeat("a", 1000)} {
			want := hashOf(secret, v)
			if len(want) != 43 {
				t.Errorf("%q is %d characters long", want, len(want))
			}
			wantOf(t, f, request("/", "X: "+v), want)
		}
	}
	// RFC 4231, test case 6: a secret longer than a block.
	long := keyfunc.HMAC(bytes.Repeat([]byte{0xaa}, 131), keyfunc.Const("Test Using Larger Than Block-Size Key - Hash Key First"))
	wantOf(t, long, request("/"), "YOQxWR7gtn8Niiaqy_W3f44LxiE3KMUUBUYEDw7jf1Q")

	other := keyfunc.HMAC([]byte("0123456789abcdeg"), keyfunc.Header("X"))
	wantOf(t, other, request("/", "X: a"), hashOf("0123456789abcdeg", "a"))

	wantOf(t, f, request("/"), "")
	wantOf(t, keyfunc.HMAC([]byte(secret), fails(nil)), request("/"), "")
	for _, want := range []error{errors.New("broken"), keyfunc.ErrSkip} {
		if k, err := keyfunc.HMAC([]byte(secret), fails(want))(request("/")); k != "" || err != want {
			t.Errorf("got %q, %v; want %v", k, err, want)
		}
	}
}

func TestHMACCopiesItsSecret(t *testing.T) {
	secret := []byte("0123456789abcdef")
	f := keyfunc.HMAC(secret, keyfunc.Const("a"))
	clear(secret)
	wantOf(t, f, request("/"), hashOf("0123456789abcdef", "a"))
}

func TestHMACAtOnce(t *testing.T) {
	const secret = "0123456789abcdef"
	f := keyfunc.HMAC([]byte(secret), keyfunc.Header("X"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			v := fmt.Sprint(i)
			r, want := request("/", "X: "+v), hashOf(secret, v)
			for range 200 {
				if k, err := f(r); k != want {
					t.Errorf("%s: got %q, %v; want %q", v, k, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestHMACMistakes(t *testing.T) {
	const secret, f = "keyfunc.HMAC: len(secret)", "keyfunc.HMAC: f"
	enough := make([]byte, 16)
	wantMistakes(t, keyfunc.HMAC(nil, keyfunc.Route), secret)
	wantMistakes(t, keyfunc.HMAC(enough[1:], keyfunc.Route), secret)
	wantMistakes(t, keyfunc.HMAC(enough, nil), f)
	wantMistakes(t, keyfunc.HMAC(nil, nil), secret, f)
	wantMistakes(t, keyfunc.HMAC(nil, keyfunc.Header("")), secret, "keyfunc.Header: name")
	wantMistakes(t, keyfunc.HMAC(enough, keyfunc.Route))

	if err := keyfunc.Validate(keyfunc.HMAC([]byte("hunter2"), keyfunc.Route)); strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the secret is in the error: %v", err)
	}
}

func TestBound(t *testing.T) {
	long := strings.Repeat("k", keyfunc.MaxKey)
	for key, want := range map[string]string{
		"": "", "a": "a", "\x00\xff": "\x00\xff", long: long, "sha256": "sha256", " sha256:": " sha256:",
		// printf ... | openssl sha256 -binary | basenc --base64url
		long + "k": "sha256:kJQDT7LQzi5AfJsmDygGqy77NS4gByL9YpbZzxz35vU",
		"sha256:":  "sha256:n9cUzm9jw7MgyUS3DoCl0QX9Lz4tMK4vqBNw4iP1DQc",
		"sha256:a": "sha256:QkjR0Z0O-C9SDiY2w-5xsVQ7JlDFC1p4NhKIgltFK0o",
	} {
		if got := keyfunc.Bound(key); got != want {
			t.Errorf("%q: got %q, want %q", key, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { keyfunc.Bound(long) }); n > 0 {
		t.Errorf("%v allocations for a key that stays", n)
	}
}

// FuzzBound holds two keys that Bound has made to be equal only if they were,
// also where one is written to look like another.
func FuzzBound(f *testing.F) {
	long := strings.Repeat("a", 200)
	f.Add("a", "b")
	f.Add(long, long+"b")
	f.Add(long[:128], long[:129])
	f.Add("sha256:", "sha256:a")
	f.Add(long, keyfunc.Bound(long))
	f.Fuzz(func(t *testing.T, a, b string) {
		keys := []string{a, b, a + b, keyfunc.Bound(a), keyfunc.Bound(b), "sha256:" + a, strings.Repeat(a, 9)}
		for i, one := range keys {
			k := keyfunc.Bound(one)
			if len(k) > keyfunc.MaxKey {
				t.Fatalf("%q: %d bytes: %q", one, len(k), k)
			}
			if len(one) <= keyfunc.MaxKey && !strings.HasPrefix(one, "sha256:") && k != one {
				t.Fatalf("%q is changed to %q", one, k)
			}
			for _, other := range keys[:i] {
				if (keyfunc.Bound(other) == k) != (other == one) {
					t.Fatalf("%q and %q are %q and %q", other, one, keyfunc.Bound(other), k)
				}
			}
		}
	})
}

func ExampleHMAC() {
	secret := []byte("32 random bytes, of a file say..") // from crypto/rand, and kept
	perPhone := keyfunc.HMAC(secret, keyfunc.Query("phone"))

	fmt.Println(perPhone(httptest.NewRequest("GET", "/?phone=%2B12025550142", nil)))
	// Output: Xbd7OI3bdHchXpNlcKdtt58trYVItfIuEYDHpu7VQK4 <nil>
}
