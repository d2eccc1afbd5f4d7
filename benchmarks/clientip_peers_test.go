package benchmarks

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/libstring"
	tollboothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"

	"github.com/weirgo/weir/keyfunc"
)

// What a limiter does with a request.
type treatment int

const (
	counted   treatment = iota // under its key
	uncounted                  // it passes without limit
	refused                    // for want of a key
	failed                     // the server's error
)

// takeKey gives the key that a library takes for a request.
type takeKey func(*http.Request) (key string, t treatment)

// way is a library, used in one way.
type way struct {
	library, used string
	// set gives the key function for a server behind proxies at these addresses,
	// or behind unix, or nil where this is no way for such a server.
	set func(tb testing.TB, proxies []string) takeKey
	// wrong has, by the case, what is wrong; the other cases are right.
	wrong map[string]string
}

const (
	weirPath      = "github.com/weirgo/weir"
	httpratePath  = "github.com/go-chi/httprate"
	tollboothPath = "github.com/didip/tollbooth/v7"
	ululePath     = "github.com/ulule/limiter/v3"
	ginPath       = "github.com/gin-gonic/gin"
)

// configured has each library in the best way that its documentation has for
// the case, short of a key function of one's own, which all of them take.
var configured = []way{
	{
		library: weirPath, used: "TrustProxies; no proxies: Trust{}; on a Unix socket: Proxies{Unix: true}",
		set: func(tb testing.TB, proxies []string) takeKey {
			var trust keyfunc.Trust
			var err error
			switch {
			case slices.Equal(proxies, unix):
				trust, err = keyfunc.Proxies{Unix: true}.Trust()
			case proxies != nil:
				trust, err = keyfunc.TrustProxies(proxies...)
			}
			if err != nil {
				tb.Fatal(err)
			}
			return weirKey(trust)
		},
	},
	{
		// The README's "Rate limit by client IP behind a proxy". That no address is
		// found is documented: all such requests share one bucket.
		library: httpratePath, used: "CanonicalizeIP of chi's ClientIPFromXFF; no proxies: of its ClientIPFromRemoteAddr; on a Unix socket: of its ClientIPFromXFFTrustedProxies(1)",
		set: func(_ testing.TB, proxies []string) takeKey {
			find := middleware.ClientIPFromRemoteAddr
			switch {
			case slices.Equal(proxies, unix):
				find = middleware.ClientIPFromXFFTrustedProxies(1)
			case proxies != nil:
				find = middleware.ClientIPFromXFF(proxies...)
			}
			var key string
			h := find(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				key = httprate.CanonicalizeIP(middleware.GetClientIP(r.Context()))
			}))
			return func(r *http.Request) (string, treatment) {
				h.ServeHTTP(nil, r)
				return key, counted
			}
		},
		wrong: map[string]string{
			"IP-06": emptyKey, "IP-07": emptyKey, "IP-08a": emptyKey, "IP-10": emptyKey, "IP-11": emptyKey,
			"V6-06": oneNAT64,
		},
	},
	{
		// It can't be told the proxies, but how many stand behind the one that added
		// the client: none, but in IP-11, where it doesn't matter. The second place
		// is for requests without the header.
		library: tollboothPath, used: `SetIPLookups "X-Forwarded-For", "RemoteAddr", SetForwardedForIndexFromBehind(0); no proxies: "RemoteAddr"`,
		set: func(_ testing.TB, proxies []string) takeKey {
			lookups := []string{"RemoteAddr"}
			if proxies != nil {
				lookups = []string{"X-Forwarded-For", "RemoteAddr"}
			}
			return tollboothKey(tollbooth.NewLimiter(1, nil).SetIPLookups(lookups).SetForwardedForIndexFromBehind(0))
		},
		wrong: map[string]string{
			"IP-03": proxyKey, "IP-04": forged, "IP-06": anyText + ", " + pass, "IP-07": perPort,
			"IP-08a": pass, "IP-10": anyText, "V6-02": oneMapped + ", " + mappedApart, "V6-06": oneNAT64,
		},
	},
	{
		// What the README says where proxies add to the header: not to read it.
		library: ululePath, used: "WithIPv6Mask(/64)",
		set: func(testing.TB, []string) takeKey {
			return ululeKey(limiter.WithIPv6Mask(net.CIDRMask(64, 128)))
		},
		wrong: map[string]string{
			"IP-02": proxyKey, "IP-03": proxyKey, "IP-04": proxyKey, "IP-06": proxyKey, "IP-07": proxyKey,
			"IP-08a": nilKey, "IP-08b": nilKey, "V6-05": nilKey, "V6-06": oneNAT64,
		},
	},
	{
		// What the README says where the proxy overwrites the header. Its
		// WithClientIPHeader is for headers of which there is none in the cases.
		library: ululePath, used: "WithIPv6Mask(/64), WithTrustForwardHeader(true)",
		set: func(_ testing.TB, proxies []string) takeKey {
			if proxies == nil {
				return nil
			}
			return ululeKey(limiter.WithIPv6Mask(net.CIDRMask(64, 128)), limiter.WithTrustForwardHeader(true))
		},
		wrong: map[string]string{
			"IP-02": forged, "IP-03": forged, "IP-04": forged, "IP-06": forged, "IP-07": proxyKey,
			"V6-05": nilKey,
		},
	},
	{
		// No limiter: ClientIP gives an address, and what counts by it is somebody
		// else's. It doesn't promise to mask. Peers on a Unix socket it always trusts.
		library: ginPath, used: "ClientIP, SetTrustedProxies; no proxies: SetTrustedProxies(nil)",
		set: func(tb testing.TB, proxies []string) takeKey {
			e := gin.New()
			if slices.Equal(proxies, unix) {
				proxies = nil
			}
			if err := e.SetTrustedProxies(proxies); err != nil {
				tb.Fatal(err)
			}
			return ginKey(e)
		},
		wrong: map[string]string{
			"IP-06": proxyKey, "IP-07": proxyKey, "IP-08a": nilKey + ", " + forged, "IP-09": emptyKey,
			"V6-01": split64, "V6-04": split64, "V6-05": emptyKey,
		},
	},
}

// asTheyCome has the libraries as they are without a word about proxies.
var asTheyCome = []way{
	{
		library: weirPath, used: "Trust{}",
		set: func(testing.TB, []string) takeKey { return weirKey(keyfunc.Trust{}) },
		wrong: map[string]string{
			"IP-02": proxyKey, "IP-03": proxyKey, "IP-04": proxyKey, "IP-06": proxyKey, "IP-07": proxyKey,
			"IP-08b": refuses,
		},
	},
	{
		library: httpratePath, used: "KeyByIP (deprecated)",
		set: func(testing.TB, []string) takeKey { return httprateKey(httprate.KeyByIP) },
		wrong: map[string]string{
			"IP-02": proxyKey, "IP-03": proxyKey, "IP-04": proxyKey, "IP-06": proxyKey, "IP-07": proxyKey,
			"IP-08a": emptyKey, "IP-08b": proxyKey, "V6-06": oneNAT64,
		},
	},
	{
		library: httpratePath, used: "KeyByRealIP (deprecated)",
		set: func(testing.TB, []string) takeKey { return httprateKey(httprate.KeyByRealIP) },
		wrong: map[string]string{
			"IP-01": forged, "IP-02": forged, "IP-03": forged, "IP-04": forged, "IP-06": forged,
			"IP-07": perPort, "IP-08a": emptyKey + ", " + forged, "IP-10": anyText, "V6-06": oneNAT64,
		},
	},
	{
		library: tollboothPath, used: "NewLimiter",
		set: func(testing.TB, []string) takeKey { return tollboothKey(tollbooth.NewLimiter(1, nil)) },
		wrong: map[string]string{
			"IP-01": forged, "IP-03": proxyKey, "IP-04": forged, "IP-06": anyText + ", " + pass,
			"IP-07": perPort, "IP-08a": pass + ", " + forged, "IP-10": anyText,
			"V6-02": oneMapped + ", " + mappedApart, "V6-06": oneNAT64,
		},
	},
	{
		library: ululePath, used: "New",
		set: func(testing.TB, []string) takeKey { return ululeKey() },
		wrong: map[string]string{
			"IP-02": proxyKey, "IP-03": proxyKey, "IP-04": proxyKey, "IP-06": proxyKey, "IP-07": proxyKey,
			"IP-08a": nilKey, "IP-08b": nilKey, "V6-01": split64, "V6-04": split64, "V6-05": nilKey,
		},
	},
	{
		library: ginPath, used: "ClientIP",
		set: func(testing.TB, []string) takeKey { return ginKey(gin.New()) },
		wrong: map[string]string{
			"IP-01": forged, "IP-02": forged, "IP-03": forged, "IP-04": forged, "IP-06": proxyKey,
			"IP-07": proxyKey, "IP-08a": nilKey + ", " + forged, "IP-09": emptyKey, "V6-01": split64,
			"V6-04": split64, "V6-05": emptyKey,
		},
	},
}

func weirKey(trust keyfunc.Trust) takeKey {
	ip := keyfunc.IP(trust)
	return func(r *http.Request) (string, treatment) {
		key, err := ip(r)
		switch {
		case errors.Is(err, keyfunc.ErrNoKey):
			return "", refused
		case err != nil:
			return "", failed
		}
		return key, counted
	}
}

func httprateKey(f httprate.KeyFunc) takeKey {
	return func(r *http.Request) (string, treatment) {
		key, err := f(r)
		if err != nil {
			return "", refused // with 428
		}
		return key, counted
	}
}

// tollboothKey gives the first part of the keys that BuildKeys makes.
func tollboothKey(l *tollboothlimiter.Limiter) takeKey {
	lookups, index := l.GetIPLookups(), l.GetForwardedForIndexFromBehind()
	return func(r *http.Request) (string, treatment) {
		key := libstring.CanonicalizeIP(libstring.RemoteIP(lookups, index, r))
		if key == "" && tollbooth.ShouldSkipLimiter(l, r) {
			return "", uncounted
		}
		return key, counted
	}
}

func ululeKey(options ...limiter.Option) takeKey {
	key := stdlib.NewMiddleware(limiter.New(nil, limiter.Rate{}, options...)).KeyGetter
	return func(r *http.Request) (string, treatment) { return key(r), counted }
}

func ginKey(e *gin.Engine) takeKey {
	c := gin.CreateTestContextOnly(httptest.NewRecorder(), e)
	return func(r *http.Request) (string, treatment) {
		c.Request = r
		return c.ClientIP(), counted
	}
}

func init() { gin.SetMode(gin.ReleaseMode) } // it would log otherwise
