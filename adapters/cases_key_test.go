package adapters_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/keyfunc/normalize"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
)

type (
	tenantKey struct{}
	userKey   struct{}
	userID    int64
)

// authenticated puts into the context whom the headers name.
var authenticated = plain(func(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if tenant := r.Header.Get("X-Tenant"); tenant != "" {
			ctx = context.WithValue(ctx, tenantKey{}, tenant)
		}
		if user := r.Header.Get("X-User"); user != "" {
			ctx = context.WithValue(ctx, userKey{}, user)
			if id, err := strconv.ParseInt(user, 10, 64); err == nil {
				ctx = context.WithValue(ctx, userKey{}, userID(id))
			}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
})

func key01(t *testing.T) {
	keys := map[string]keyfunc.Func{
		"Context": keyfunc.Join(keyfunc.Context(tenantKey{}), keyfunc.Context(userKey{})),
		"Header":  keyfunc.Join(keyfunc.Header("X-Tenant"), keyfunc.Header("X-User")),
		"Query":   keyfunc.Join(keyfunc.Query("t"), keyfunc.Query("u")),
	}
	cases := keyCases{
		"separator": {limit: 1, key: keys["Query"], asks: []ask{
			to(`/?t=a|b&u=c`), to(`/?t=a&u=b|c`), to(`/?t=a\&u=b|c`), to(`/?t=a\|b&u=c`), to(`/?t=a\\&u=|c`),
		}, want: []int{200, 200, 200, 200, 200}, stored: 5},
	}
	for name, key := range keys {
		cases[name] = keyCase{limit: 1, key: key, layers: []layer{authenticated}, asks: []ask{
			to("/?t=21&u=1", "X-Tenant: 21", "X-User: 1"), to("/?t=2&u=11", "X-Tenant: 2", "X-User: 11"),
			to("/?t=1&u=12", "X-Tenant: 1", "X-User: 12"), to("/?t=11&u=2", "X-Tenant: 11", "X-User: 2"),
		}, want: []int{200, 200, 200, 200}, stored: 4}
	}
	cases.run(t)
}

func key03(t *testing.T) {
	keyCase{limit: 1, key: keyfunc.First(keyfunc.Context(userKey{}), perIP), layers: []layer{authenticated}, asks: []ask{
		from("203.0.113.7:1"), from("203.0.113.99:1", "X-User: 203.0.113.7"),
	}, want: []int{200, 200}, stored: 2}.run(t)
}

// Where there is nothing to fall back on, who leaves it out is rejected.
func key04(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(" :x"))
	cases := keyCases{
		"fallback": {limit: 3, key: keyfunc.First(keyfunc.Header("X-User-ID"), perIP), asks: []ask{
			from("203.0.113.7:1"), from("203.0.113.7:1"), from("203.0.113.7:1"), from("203.0.113.7:1"), from("198.51.100.9:1"),
			from("203.0.113.7:1", "X-User-ID: "), from("203.0.113.7:1", "X-User-ID: u1"), from("203.0.113.7:1", "X-User-ID:  \t "),
		}, want: []int{200, 200, 200, 429, 200, 429, 200, 429}, stored: 3},
		"Header":    {key: keyfunc.Header("X-User-ID"), asks: []ask{{}, to("/", "X-User-ID: ")}},
		"Cookie":    {key: keyfunc.Cookie("session"), asks: []ask{{}, to("/", "Cookie: session="), to("/", "Cookie: other=1")}},
		"BasicUser": {key: keyfunc.BasicUser, asks: []ask{{}, to("/", basic), to("/", "Authorization: Bearer x")}},
		"Query":     {key: keyfunc.Query("u"), asks: []ask{{}, to("/?u="), to("/?u=%20"), to("/?U=1")}},
		"Context":   {key: keyfunc.Context(userKey{}), asks: []ask{{}}},
		"Form":      {key: keyfunc.Form("u"), asks: []ask{{}, post("/", form, "u=+"), post("/", "text/plain", "u=1"), to("/?u=1")}},
		"JSON":      {key: keyfunc.JSON("u"), asks: []ask{{}, post("/", "application/json", `{"u":""}`), post("/", "application/json", `{"u":null}`)}},
		"PathValue": {key: keyfunc.PathValue("u"), asks: []ask{{}, to("/?u=1")}},
		"IP":        {key: perIP, asks: []ask{from("@"), from("none")}},
	}
	for name, c := range cases {
		if c.want == nil {
			c.limit, c.want, c.keys = 3, slices.Repeat([]int{400}, len(c.asks)), []string{}
			cases[name] = c
		}
	}
	cases.run(t)
}

func key05(t *testing.T) {
	const most = 512
	long := strings.Repeat("A", 65536)
	query := func(user string) ask { return to("/?u=" + user) }
	json := func(user string) ask { return post("/", "application/json", `{"u":"`+user+`"}`) }
	sources := map[string]struct {
		key keyfunc.Func
		ask func(user string) ask
	}{
		"Header": {keyfunc.Header("X-User-ID"), func(user string) ask { return to("/", "X-User-ID: "+user) }},
		"Query":  {keyfunc.Query("u"), query},
		"Cookie": {keyfunc.Cookie("u"), func(user string) ask { return to("/", "Cookie: u="+user) }},
		"BasicUser": {keyfunc.BasicUser, func(user string) ask {
			return to("/", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(user+":x")))
		}},
		"Form": {keyfunc.Body{Max: 1 << 20}.Form("u"), func(user string) ask {
			return post("/", "application/x-www-form-urlencoded", "u="+user)
		}},
		"JSON":  {keyfunc.Body{Max: 1 << 20}.JSON("u"), json},
		"Map":   {keyfunc.Map(keyfunc.Query("u"), normalize.Fold), query},
		"First": {keyfunc.First(keyfunc.Query("u"), perIP), query},
		"Join":  {keyfunc.Join(keyfunc.Query("u"), perIP), query},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, source := range sources {
			t.Run(name, func(t *testing.T) {
				l := newLimiter(t, 1, source.key)
				h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", fine}, {"POST", "/", fine}}})
				l.want(t, h, []int{200, 200, 429}, source.ask(long+"1"), source.ask(long+"2"), source.ask(long+"1"))
				keys := l.store.since(0)
				for _, key := range keys {
					if len(key) == 0 || len(key) > most {
						t.Errorf("a key of %d bytes", len(key))
					}
				}
				// Nobody can write the short key of another.
				l.want(t, h, []int{200, 429}, source.ask(keys[0]), source.ask(keys[0]))
			})
		}
		t.Run("body too long", func(t *testing.T) {
			keyCase{limit: 1, key: keyfunc.JSON("u"), asks: []ask{json(long + "1"), json(long + "2"), json(long + "1")},
				want: []int{413, 413, 413}, keys: []string{}}.test(t, serve)
		})
	})
}

func newPolicy(t *testing.T, name string, count int64, period time.Duration) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, algorithms.Limit{Count: count, Period: period})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func key06(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		day := newPolicy(t, "day", 30, 24*time.Hour)
		l := newLimiter(t, 3, perIP, func(c *middleware.Config) {
			c.Rules = append(c.Rules, middleware.Rule{Policy: day, Key: perIP})
		})
		var minuteLeft, dayLeft []int64
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", func(w http.ResponseWriter, r *http.Request) {
			d, _ := middleware.FromContext(r.Context())
			minuteLeft, dayLeft = append(minuteLeft, d.Results[0].Remaining), append(dayLeft, d.Results[1].Remaining)
		}}}})
		l.want(t, h, []int{200, 200, 200, 429}, make([]ask, 4)...)
		if !slices.Equal(minuteLeft, []int64{2, 1, 0}) || !slices.Equal(dayLeft, []int64{29, 28, 27}) {
			t.Errorf("remaining %v of the minute and %v of the day", minuteLeft, dayLeft)
		}
		look, err := store.Take(t.Context(), l.store, day, "203.0.113.7", 0)
		if err != nil || look.Remaining != 27 {
			t.Errorf("at last %d of the day, %v; want 27", look.Remaining, err)
		}
	})
}

func key07(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 30, keyfunc.Const("all"), func(c *middleware.Config) {
			c.Rules = append(c.Rules, middleware.Rule{Policy: newPolicy(t, "second", 1, time.Second), Key: keyfunc.Const("all")})
		})
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", fine}}})
		for i, want := range []int{200, 429, 200} {
			l.elapsed = time.Duration(i) * time.Second / 2
			l.want(t, h, []int{want}, ask{})
		}
	})
}

func key08(t *testing.T) {
	const path = "/auth/local"
	var body, query, form []ask
	for i := range 7 {
		email := fmt.Sprintf("r%d@example.org", i)
		body = append(body, post(path, "application/json", `{"identifier":"alice","password":"x","email":"`+email+`"}`))
		query = append(query, post(path+"?email="+email, "application/json", `{"identifier":"alice","password":"x"}`))
		form = append(form, post(path, "application/x-www-form-urlencoded", "identifier=alice&password=x&email="+email))
	}
	sources := map[string]struct {
		key  keyfunc.Func
		asks []ask
	}{
		"body":           {perRoute, body},
		"query":          {perRoute, query},
		"form":           {perRoute, form},
		"declared field": {keyfunc.Join(keyfunc.Route, keyfunc.JSON("identifier")), body},
		"declared form":  {keyfunc.Join(keyfunc.Route, keyfunc.Form("identifier")), form},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, c := range sources {
			t.Run(name, func(t *testing.T) {
				l := newLimiter(t, 5, c.key)
				var bodies []string
				h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"POST", path, func(w http.ResponseWriter, r *http.Request) {
					b, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					bodies = append(bodies, string(b))
				}}}})
				l.want(t, h, []int{200, 200, 200, 200, 200, 429, 429}, c.asks...)
				for i, got := range bodies {
					if got != c.asks[i].body {
						t.Errorf("the handler has body %q, want %q", got, c.asks[i].body)
					}
				}
			})
		}
	})
}

// A parameter that is there twice has no value; of a header the first line is
// it, which the handler gets.
func key09(t *testing.T) {
	const phone = "%2B12025550142"
	var query, form, json, header, cookie []ask
	for i := range 4 {
		other := fmt.Sprintf("%%2B1202555010%d", i)
		query = append(query, to("/?phone="+phone+"&phone="+other))
		form = append(form, post("/", "application/x-www-form-urlencoded", "phone="+phone+"&phone="+other))
		json = append(json, post("/", "application/json", `{"phone":"`+phone+`","phone":"`+other+`"}`))
		header = append(header, to("/", "X-User-ID: "+phone, "X-User-ID: "+other))
		cookie = append(cookie, to("/", "Cookie: id="+phone+"; id="+other))
	}
	rejected, first := []int{400, 400, 400, 400, 200}, []int{200, 200, 429, 429, 429}
	sources := map[string]struct {
		key  keyfunc.Func
		asks []ask
		want []int
	}{
		"query":  {keyfunc.Query("phone"), append(query, to("/?phone="+phone)), rejected},
		"form":   {keyfunc.Form("phone"), append(form, post("/", "application/x-www-form-urlencoded", "phone="+phone)), rejected},
		"JSON":   {keyfunc.JSON("phone"), append(json, post("/", "application/json", `{"phone":"`+phone+`"}`)), rejected},
		"header": {keyfunc.Header("X-User-ID"), append(header, to("/", "X-User-ID: "+phone)), first},
		"cookie": {keyfunc.Cookie("id"), append(cookie, to("/", "Cookie: id="+phone)), first},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, c := range sources {
			t.Run(name, func(t *testing.T) {
				l := newLimiter(t, 2, c.key)
				seen := map[string]bool{}
				handler := func(w http.ResponseWriter, r *http.Request) {
					value := r.Header.Get("X-User-ID")
					if c, err := r.Cookie("id"); err == nil {
						value = c.Value
					}
					seen[value] = true
				}
				h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", handler}, {"POST", "/", handler}}})
				l.want(t, h, c.want, c.asks...)
				if len(seen) != 1 || l.store.Len() != 1 {
					t.Errorf("the handler saw %v, and the store %d keys", seen, l.store.Len())
				}
			})
		}
	})
}

func key10(t *testing.T) {
	fold := func(f keyfunc.Func) keyfunc.Func { return keyfunc.Map(f, normalize.Fold) }
	sources := map[string]struct {
		key keyfunc.Func
		ask func(email string) ask
	}{
		"form": {fold(keyfunc.Form("email")), func(email string) ask {
			return post("/", "application/x-www-form-urlencoded", url.Values{"email": {email}}.Encode())
		}},
		"JSON": {fold(keyfunc.JSON("email")), func(email string) ask {
			return post("/", "application/json", `{"email":`+strconv.Quote(email)+`}`)
		}},
		"query": {fold(keyfunc.Query("email")), func(email string) ask { return to("/?email=" + url.QueryEscape(email)) }},
		"basic": {fold(keyfunc.BasicUser), func(email string) ask {
			return to("/", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(email+":x")))
		}},
		"hidden": {keyfunc.HMAC([]byte("0123456789abcdef"), fold(keyfunc.Query("email"))), func(email string) ask {
			return to("/?email=" + url.QueryEscape(email))
		}},
	}
	cases := keyCases{}
	for name, source := range sources {
		var asks []ask
		for _, email := range []string{"victim@example.org", " victim@example.org", "ViCtIm@eXaMpLe.org",
			"\tvictim@example.org", "victim@example.org \n", "VICTIM@EXAMPLE.ORG"} {
			asks = append(asks, source.ask(email))
		}
		cases[name] = keyCase{limit: 5, key: source.key, asks: asks, want: []int{200, 200, 200, 200, 200, 429}, stored: 1}
		cases[name+", NFC"] = keyCase{limit: 1, key: source.key,
			asks: []ask{source.ask("jose\u0301@example.org"), source.ask("jos\u00e9@example.org"), source.ask("jose@example.org")},
			want: []int{200, 429, 200}, stored: 2}
	}
	cases.run(t)
}

func key12(t *testing.T) {
	keyCase{limit: 2, key: keyfunc.Header("Limit-Key"), asks: []ask{
		to("/", "Limit-Key: 192.0.2.1"), to("/", "Limit-Key: 192.0.2.1"), to("/", "Limit-Key: 192.0.2.1"),
		to("/", "Limit-Key: 192.0.2.2"), to("/", "Limit-Key: 192.0.2.2"),
	}, want: []int{200, 200, 429, 200, 200}, stored: 2}.run(t)
}

func key13(t *testing.T) {
	var asks []ask
	for _, id := range []string{"u", "u%00a", "u%00", "u%0D%0ASET%20x%201", "u%FF", "u%FE", "u%7F"} {
		asks = append(asks, to("/?id="+id))
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		var logged bytes.Buffer
		l := newLimiter(t, 1, keyfunc.Query("id"), func(c *middleware.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/", fine}}})
		l.want(t, h, slices.Repeat([]int{200}, 7), asks...)
		for _, a := range asks {
			logged.Reset()
			l.want(t, h, []int{429}, a)
			if lines := strings.Count(logged.String(), "\n"); lines > 1 || strings.Contains(logged.String(), "SET x 1") {
				t.Errorf("a refusal logs %q", &logged)
			}
		}
		if n := l.store.Len(); n != 7 {
			t.Errorf("%d keys, want 7", n)
		}
	})
}

func key14(t *testing.T) {
	modes := map[string]struct {
		key  keyfunc.Func
		want []int
	}{
		"a": {perRoute, []int{200, 200, 429, 429, 429}},
		"b": {keyfunc.Join(keyfunc.Route, keyfunc.PathValue("orderId"), perIP), []int{200, 200, 200, 200, 429}},
	}
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		for name, mode := range modes {
			t.Run(name, func(t *testing.T) {
				l := newLimiter(t, 2, mode.key)
				h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/orders/{orderId}/verify", fine}}})
				l.wantStatuses(t, h, mode.want, "GET /orders/123/verify", "GET /orders/234/verify",
					"GET /orders/345/verify", "GET /orders/123/verify", "GET /orders/123/verify")
			})
		}
	})
}

func key15(t *testing.T) {
	each(t, func(t *testing.T, serve func(app) http.Handler) {
		l := newLimiter(t, 1, keyfunc.Join(keyfunc.Route, keyfunc.Query("a"), keyfunc.Query("b")))
		h := serve(app{layers: []layer{limit(l.Middleware)}, routes: []route{{"GET", "/s", fine}}})
		l.wantStatuses(t, h, []int{200, 429, 429, 429, 200},
			"GET /s?a=1&b=2", "GET /s?b=2&a=1", "GET /s?a=1&b=2&z=9", "GET /s?a=%31&b=2", "GET /s?a=1&b=3")
	})
}
