package keyfunc_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/keyfunc/normalize"
)

// wantKeys holds the number of keys that c has counted by.
func (c *counter) wantKeys(t *testing.T, n int) {
	t.Helper()
	if len(c.used) != n {
		t.Errorf("%d keys, want %d: %q", len(c.used), n, c.used)
	}
}

// keyCases are the cases of the class key-building.
func keyCases(t *testing.T) {
	ip := keyfunc.IP(keyfunc.Trust{})
	t.Run("KEY-01", func(t *testing.T) {
		c := newCounter(1, keyfunc.Join(keyfunc.Header("X-Tenant"), keyfunc.Header("X-User")))
		c.want(t, []int{200, 200, 200, 200}, nil,
			request("/", "X-Tenant: 21", "X-User: 1"), request("/", "X-Tenant: 2", "X-User: 11"),
			request("/", "X-Tenant: 1", "X-User: 12"), request("/", "X-Tenant: 11", "X-User: 2"))
		c.wantKeys(t, 4)
	})
	userOrIP := keyfunc.First(keyfunc.Header("X-User-ID"), ip)
	t.Run("KEY-03", func(t *testing.T) {
		newCounter(1, userOrIP).want(t, []int{200, 200}, nil,
			from("203.0.113.7:1"), from("203.0.113.99:1", "X-User-ID: 203.0.113.7"))
	})
	t.Run("KEY-04", func(t *testing.T) {
		newCounter(3, userOrIP).want(t, []int{200, 200, 200, 429, 200, 429, 200}, nil,
			from("203.0.113.7:1"), from("203.0.113.7:1"), from("203.0.113.7:1"), from("203.0.113.7:1"),
			from("198.51.100.9:1"), from("203.0.113.7:1", "X-User-ID: "), from("203.0.113.7:1", "X-User-ID: u1"))
		// A blank header counts as absent; refused when missing is a 4xx.
		if _, k := newCounter(3, userOrIP).decide(from("203.0.113.7:1", "X-User-ID:  \t")); k != "1:203.0.113.7" {
			t.Errorf("blank: key %q", k)
		}
		newCounter(3, keyfunc.Header("X-User-ID")).want(t, []int{400, 400}, nil,
			from("203.0.113.7:1"), from("203.0.113.7:1", "X-User-ID:  "))
	})
	t.Run("KEY-05", func(t *testing.T) {
		c := newCounter(1, keyfunc.Map(keyfunc.Header("X-User-ID"), keyfunc.Bound)) // what the middleware does to all
		long := "X-User-ID: " + strings.Repeat("A", 65536)
		c.want(t, []int{200, 200, 429}, nil, request("/", long+"1"), request("/", long+"2"), request("/", long+"1"))
		for k := range c.used {
			if len(k) > 512 {
				t.Errorf("a key of %d bytes", len(k))
			}
		}
	})
	t.Run("KEY-08", func(t *testing.T) {
		c := newCounter(5, keyfunc.Join(keyfunc.Route, ip))
		mux := http.NewServeMux()
		mux.Handle("POST /auth/local", c.handler(fine))
		var got []int
		for i := range 7 {
			// Whether in the body or in the query: no one has declared it.
			body := fmt.Sprintf(`{"identifier":"alice","password":"x","email":"r%d@example.org"}`, i)
			r := httptest.NewRequest("POST", fmt.Sprintf("/auth/local?email=r%d@example.org", i), strings.NewReader(body))
			got = append(got, serve(mux, r))
		}
		wantStatuses(t, got, 200, 200, 200, 200, 200, 429, 429)
		c.wantKeys(t, 1)
	})
	t.Run("KEY-09", func(t *testing.T) {
		const handlers = "+12025550142" // what Header.Get gives the handler
		newCounter(2, keyfunc.Header("X-User-ID")).want(t, []int{200, 200, 429, 429, 429},
			slices.Repeat([]string{handlers}, 5),
			request("/", "X-User-ID: "+handlers, "X-User-ID: +12025550100"),
			request("/", "X-User-ID: "+handlers, "X-User-ID: +12025550101"),
			request("/", "X-User-ID: "+handlers, "X-User-ID: +12025550102"),
			request("/", "X-User-ID: "+handlers, "X-User-ID: +12025550103"),
			request("/", "X-User-ID: "+handlers))
		newCounter(2, keyfunc.Query("phone")).want(t, []int{400, 400, 400, 400, 200},
			[]string{"", "", "", "", handlers},
			request("/sms?phone=%2B12025550142&phone=%2B12025550100"), request("/sms?phone=%2B12025550142&phone=%2B12025550101"),
			request("/sms?phone=%2B12025550142&phone=%2B12025550102"), request("/sms?phone=%2B12025550142&phone=%2B12025550103"),
			request("/sms?phone=%2B12025550142"))
	})
	t.Run("KEY-10", func(t *testing.T) {
		login := func(email string) *http.Request {
			r := httptest.NewRequest("POST", "/login", strings.NewReader(url.Values{"email": {email}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return r
		}
		perAccount := keyfunc.Map(keyfunc.Form("email"), normalize.Fold)
		newCounter(5, perAccount).want(t, []int{200, 200, 200, 200, 200, 429}, slices.Repeat([]string{"victim@example.org"}, 6),
			login("victim@example.org"), login(" victim@example.org"), login("ViCtIm@eXaMpLe.org"),
			login("\tvictim@example.org"), login("victim@example.org \n"), login("VICTIM@EXAMPLE.ORG"))
		newCounter(1, perAccount).want(t, []int{200, 429}, nil, login("jose\u0301@example.org"), login("jos\u00e9@example.org"))
	})
	t.Run("KEY-13", func(t *testing.T) {
		c := newCounter(1, keyfunc.Map(keyfunc.Query("id"), keyfunc.Bound))
		c.want(t, slices.Repeat([]int{200}, 7), []string{"u", "u\x00a", "u\x00", "u\r\nSET x 1", "u\xff", "u\xfe", "u\x7f"},
			request("/x?id=u"), request("/x?id=u%00a"), request("/x?id=u%00"), request("/x?id=u%0D%0ASET%20x%201"),
			request("/x?id=u%FF"), request("/x?id=u%FE"), request("/x?id=u%7F"))
		c.wantKeys(t, 7)
	})
	t.Run("KEY-14", func(t *testing.T) {
		for name, mode := range map[string]struct {
			key  keyfunc.Func
			want []int
		}{
			"mode_a": {keyfunc.Join(keyfunc.Route, ip), []int{200, 200, 429, 429, 429}},
			"mode_b": {keyfunc.Join(keyfunc.Route, keyfunc.PathValue("orderId"), ip), []int{200, 200, 200, 200, 429}},
		} {
			t.Run(name, func(t *testing.T) {
				mux := http.NewServeMux()
				mux.Handle("/orders/{orderId}/verify", newCounter(2, mode.key).handler(fine))
				var got []int
				for _, id := range []string{"123", "234", "345", "123", "123"} {
					got = append(got, serve(mux, request("/orders/"+id+"/verify")))
				}
				wantStatuses(t, got, mode.want...)
			})
		}
	})
	t.Run("KEY-15", func(t *testing.T) {
		mux := http.NewServeMux()
		mux.Handle("/s", newCounter(1, keyfunc.Join(keyfunc.Route, keyfunc.Query("a"), keyfunc.Query("b"))).handler(fine))
		var got []int
		for _, target := range []string{"/s?a=1&b=2", "/s?b=2&a=1", "/s?a=1&b=2&z=9", "/s?a=%31&b=2", "/s?a=1&b=3"} {
			got = append(got, serve(mux, request(target)))
		}
		wantStatuses(t, got, 200, 429, 429, 429, 200)
	})
}

var fine = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// serve gives the status of h's answer.
func serve(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func wantStatuses(t *testing.T, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("status %v, want %v", got, want)
	}
}
