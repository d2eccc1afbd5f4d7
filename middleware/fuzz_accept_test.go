package middleware_test

import (
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
)

// weight is a qvalue (RFC 9110 §12.4.2), none one that is 0, and loose what the
// other parser reads though it is not well-formed, or more of than this one does.
var (
	weight = regexp.MustCompile(`^(0(\.\d{0,3})?|1(\.0{0,3})?)$`)
	none   = regexp.MustCompile(`^0(\.0*)?$`)
	loose  = regexp.MustCompile(`"|\s=|=\s`)
)

// namesJSON tells whether an element of Accept asks for JSON, as another parser
// reads it. clear is false where that is no well-formed element.
func namesJSON(element string) (asks, clear bool) {
	media, params, err := mime.ParseMediaType(element)
	if err != nil || loose.MatchString(element) {
		return false, false
	}
	if q, ok := params["q"]; ok {
		if !weight.MatchString(q) {
			return false, false
		}
		if none.MatchString(q) {
			return false, true
		}
	}
	return media == "application/json" || media == "application/*" || strings.HasSuffix(media, "+json"), true
}

// FuzzAccept gives a refusal any Accept, line by line. The body is what is asked
// for, as far as another parser understands that.
func FuzzAccept(f *testing.F) {
	for _, s := range []string{
		"", "*/*", "application/json", "APPLICATION/JSON", "text/html\napplication/json", "text/html,application/json;q=0.1", "application/json;q=0", "application/json; Q=0.000",
		"application/json ; q = 0", "application/problem+json;v=1;q=1", "application/*", "application/json;q=", "+json", "a/b+json;q=0,\t", ";;;,,,;q=0", "application/json;a=\"x,y\";q=0", "\xff\x00", "application/jſon",
		"a*/b+json", "text/json", "application/ndjson", "json", "application/json;charset=utf-8;q=0.0",
	} {
		f.Add(s)
	}
	m, err := middleware.New(middleware.Config{
		Store: answering{{Limited: true, Limit: 1, RetryAfter: 1}}, Logger: slog.New(slog.DiscardHandler),
		Rules: []middleware.Rule{{Policy: policy(f, "p", algorithms.PerMinute(1)), Key: keyfunc.Const("k")}},
	})
	if err != nil {
		f.Fatal(err)
	}
	h := m.Handler(ok)
	isJSON := func(t *testing.T, lines ...string) bool {
		w := serve(h, func(r *http.Request) { r.Header["Accept"] = lines })
		kind := w.Header().Get("Content-Type")
		if json := kind == "application/problem+json"; json != strings.HasPrefix(w.Body.String(), "{") || !json && kind != "text/plain; charset=utf-8" {
			t.Errorf("%q: %s, %q", lines, kind, w.Body)
		}
		return kind == "application/problem+json"
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		got := isJSON(t, lines...)
		asks, clear := false, true
		for _, element := range strings.Split(strings.Join(lines, ","), ",") {
			if strings.TrimSpace(element) == "" {
				continue
			}
			one, ok := namesJSON(element)
			asks, clear = asks || one, clear && ok
		}
		if asks && !got || clear && got != asks {
			t.Errorf("%q: JSON %t, another parser says %t", lines, got, asks)
		}
		if joined := isJSON(t, strings.Join(lines, ",")); joined != got {
			t.Errorf("%q: JSON %t, in one line %t", lines, got, joined)
		}
		if !isJSON(t, append(lines, "application/json")...) {
			t.Errorf("%q, and then application/json, is not JSON", lines)
		}
		if low := strings.ToLower(text); got && !strings.Contains(low, "json") && !strings.Contains(low, "application/*") {
			t.Errorf("%q is JSON", lines)
		}
	})
}
