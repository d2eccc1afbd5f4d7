package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// mistake is a FieldError, of whose reason a part is known.
type mistake struct {
	field  string
	value  any
	reason string
}

func wantMistakes(t *testing.T, name string, err error, want []mistake) {
	t.Helper()
	var got []*middleware.FieldError
	for _, leaf := range leaves(err) {
		if e, ok := leaf.(*middleware.FieldError); ok {
			got = append(got, e)
		}
	}
	for i, w := range want {
		if i >= len(got) {
			t.Errorf("%s: no %+v", name, w)
		} else if e := got[i]; e.Field != w.field || !reflect.DeepEqual(e.Value, w.value) || e.Reason == "" || !strings.Contains(e.Reason, w.reason) {
			t.Errorf("%s: %v, want %+v", name, e, w)
		}
	}
	for _, e := range got[min(len(want), len(got)):] {
		t.Errorf("%s: also %v", name, e)
	}
	if (err != nil) != (len(want) > 0) {
		t.Errorf("%s: %v", name, err)
	}
}

// All mistakes of all kinds come back together, in the order of the fields.
func TestNewReportsAllKindsAtOnce(t *testing.T) {
	good, window := policy(t, "good", algorithms.PerMinute(1)), policyOf(t, "window", algorithms.FixedWindow{}, algorithms.PerMinute(1))
	short := keyfunc.HMAC([]byte("short"), nil)
	m, err := middleware.New(middleware.Config{
		Store: memstore.New(memstore.Config{MaxKeys: -1}),
		Rules: []middleware.Rule{
			{Policy: good, Unit: "bytes", Key: keyfunc.Join(short, keyfunc.Const("k"))},
			{Policies: []*algorithms.Policy{good}, Key: keyfunc.Const("k")},
			{PolicyOf: unlimited, Policy: window, Policies: []*algorithms.Policy{window, nil, window}, Key: keyfunc.Const("k")},
			{PolicyOf: unlimited},
			{Policy: policy(t, "good", algorithms.PerHour(1)), Key: keyfunc.Const("k")},
			{Policy: policyOf(t, "paced", algorithms.FixedWindow{}, algorithms.PerMinute(1)), Key: keyfunc.Const("k"), Pace: true, Shadow: true},
			{Policy: &algorithms.Policy{}, Key: keyfunc.Header("")},
		},
		Ban: window, BanKey: keyfunc.First(),
		Headers: middleware.Headers{
			Dialect: 9, When: 7, ResetAs: 8, Prefix: "X Rate", Limit: "Retry-After", Remaining: "X\r\nY", Reset: "retry-after",
			PartitionSecret: []byte("hunter2"), RetryJitter: -1,
		},
	})
	if m != nil {
		t.Error("made")
	}
	wantMistakes(t, "all", err, []mistake{
		{"Rules[0].Key: keyfunc.HMAC: len(secret)", 5, "at least 16 bytes"},
		{"Rules[0].Key: keyfunc.HMAC: f", nil, "is nil"},
		{"Rules[0].Unit", "bytes", `must be "requests"`},
		{"Rules[1].PolicyOf", nil, "is missing"},
		{"Rules[1].Policy", nil, "is missing"},
		{"Rules[2].Policy", "window", "can't be set with PolicyOf"},
		{"Rules[2].Policies[1]", nil, "is missing"},
		{"Rules[2].Policies[2]", "window", "has the name of Rules[2].Policies[0]"},
		{"Rules[3].Key", nil, "is missing"},
		{"Rules[3].Policies", []*algorithms.Policy(nil), "is missing"},
		{"Rules[4].Policy", "good", "has the name of Rules[0].Policy"},
		{"Rules[5].Pace", true, "can't be set with Shadow"},
		{"Rules[5].Pace", true, "needs an algorithm that keeps a queue"},
		{"Rules[6].Key: keyfunc.Header: name", "", ""},
		{"Rules[6].Policy", "", "was not made by algorithms.NewPolicy"},
		{"BanKey: keyfunc.First: parts", []keyfunc.Func(nil), "at least one"},
		{"Ban", "window", "has the name of Rules[2].Policies[0]"},
		{"Headers.Dialect", 9, "must be XRateLimit"},
		{"Headers.When", 7, "must be Always"},
		{"Headers.ResetAs", 8, "must be DeltaSeconds"},
		{"Headers.RetryJitter", time.Duration(-1), "must be 0 to 1h0m0s"},
		{"Headers.PartitionSecret: length", 7, "at least 16 bytes"},
		{"Headers.Prefix", "X Rate", "must be the beginning of a header's name"},
		{"Headers.Limit", "Retry-After", "meaning of its own"},
		{"Headers.Remaining", "X\r\nY", "must be a header's name, such as X-RateLimit-Remaining"},
		{"Headers.Reset", "retry-after", "meaning of its own"},
		{"Headers.Reset", "retry-after", "is the name of Limit too"},
		{"memstore.Config.MaxKeys", -1, "must be 1 to"},
	})
	if s := err.Error(); strings.Contains(s, "hunter2") || strings.Contains(s, "short\"") {
		t.Errorf("a secret is in %q", s)
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, "weir: ") && !strings.HasPrefix(line, "middleware.Config.Store: weir: ") {
			t.Errorf("%q says not where it is from", line)
		}
	}
}

func TestHeadersMistakes(t *testing.T) {
	jitter := func(d time.Duration) middleware.Headers { return middleware.Headers{RetryJitter: d} }
	secret := func(n int) middleware.Headers { return middleware.Headers{PartitionSecret: make([]byte, n)} }
	for name, c := range map[string]struct {
		headers middleware.Headers
		want    []mistake
	}{
		"all dialects":     {middleware.Headers{Dialect: middleware.XRateLimit | middleware.Draft11, When: middleware.Never, ResetAs: middleware.RFC3339}, nil},
		"no such dialect":  {middleware.Headers{Dialect: 4}, []mistake{{"Headers.Dialect", 4, ""}}},
		"no such when":     {middleware.Headers{When: 3}, []mistake{{"Headers.When", 3, ""}}},
		"no such format":   {middleware.Headers{ResetAs: 3}, []mistake{{"Headers.ResetAs", 3, ""}}},
		"an hour":          {jitter(time.Hour), nil},
		"more":             {jitter(time.Hour + 1), []mistake{{"Headers.RetryJitter", time.Hour + 1, "only lengthens"}}},
		"16 bytes":         {secret(16), nil},
		"15 bytes":         {secret(15), []mistake{{"Headers.PartitionSecret: length", 15, ""}}},
		"an empty secret":  {secret(0), []mistake{{"Headers.PartitionSecret: length", 0, ""}}},
		"all of a token":   {middleware.Headers{Prefix: "azAZ09!#$%&'*+-.^_`|~"}, nil},
		"a colon":          {middleware.Headers{Prefix: "X:"}, []mistake{{"Headers.Prefix", "X:", ""}}},
		"not ASCII":        {middleware.Headers{Limit: "X-Límite"}, []mistake{{"Headers.Limit", "X-Límite", "such as X-RateLimit-Limit"}}},
		"not UTF-8":        {middleware.Headers{Reset: "X\xff"}, []mistake{{"Headers.Reset", "X\xff", ""}}},
		"the draft's":      {middleware.Headers{Limit: "RATELIMIT"}, []mistake{{"Headers.Limit", "RATELIMIT", "meaning of its own"}}},
		"by its prefix":    {middleware.Headers{Prefix: "Content-", Limit: "content-LENGTH"}, []mistake{{"Headers.Limit", "content-LENGTH", "meaning of its own"}}},
		"framing":          {middleware.Headers{Limit: "Transfer-Encoding", Reset: "Trailer"}, []mistake{{"Headers.Limit", "Transfer-Encoding", ""}, {"Headers.Reset", "Trailer", ""}}},
		"twice":            {middleware.Headers{Remaining: "x-n", Reset: "X-N"}, []mistake{{"Headers.Reset", "X-N", "is the name of Remaining too"}}},
		"three times":      {middleware.Headers{Limit: "N", Remaining: "N", Reset: "N"}, []mistake{{"Headers.Remaining", "N", "is the name of Limit too"}, {"Headers.Reset", "N", "is the name of Limit too"}}},
		"another's":        {middleware.Headers{Limit: "X-RateLimit-Reset"}, []mistake{{"Headers.Reset", "X-RateLimit-Reset", "is the name of Limit too"}}},
		"older drafts'":    {middleware.Headers{Prefix: "RateLimit-"}, nil},
		"with the draft's": {middleware.Headers{Prefix: "RateLimit-", Dialect: middleware.XRateLimit | middleware.Draft11}, nil},
	} {
		_, err := middleware.New(middleware.Config{
			Store: memstore.New(memstore.Config{}), Headers: c.headers,
			Rules: []middleware.Rule{with(t, "p", algorithms.GCRA{}, algorithms.PerMinute(1))},
		})
		wantMistakes(t, name, err, c.want)
	}
}

// unlimited leaves its rule out.
func unlimited(*http.Request) *algorithms.Policy { return nil }

func TestUnits(t *testing.T) {
	for _, unit := range []string{"", "requests", "content-bytes", "concurrent-requests", "Requests", "bytes"} {
		_, err := middleware.New(middleware.Config{Store: memstore.New(memstore.Config{}), Rules: []middleware.Rule{
			with(t, "p", algorithms.GCRA{}, algorithms.PerMinute(1), func(r *middleware.Rule) { r.Unit = unit }),
		}})
		var want []mistake
		if unit == "Requests" || unit == "bytes" {
			want = []mistake{{"Rules[0].Unit", unit, "content-bytes"}}
		}
		wantMistakes(t, unit, err, want)
	}
}

// askedFor is a store that notes for which policies it is asked, together.
type askedFor struct {
	store.Store
	groups *[]string
	say    func(names []string) error
}

func (s askedFor) Validate(policies ...*algorithms.Policy) error {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name())
	}
	*s.groups = append(*s.groups, strings.Join(names, " "))
	return s.say(names)
}

// A store is asked for each policy in a group that a request can make, the ban's
// too; what it says again and again is told once, and what wraps several stays whole.
func TestStoreIsAskedForGroups(t *testing.T) {
	var groups []string
	errWhole, errPart := errors.New("the whole"), errors.New("a part")
	s := askedFor{memstore.New(memstore.Config{}), &groups, func(names []string) error {
		errs := []error{fmt.Errorf("store: %w", errWhole), fmt.Errorf("%w of %w", errPart, errWhole)}
		if slices.Contains(names, "c") {
			errs = append(errs, errors.Join(errors.New("not c"), &middleware.FieldError{Field: "c", Value: 1, Reason: "never c"}))
		}
		return errors.Join(errs...)
	}}
	of := func(names ...string) (all []*algorithms.Policy) {
		for _, name := range names {
			all = append(all, policy(t, name, algorithms.PerMinute(1)))
		}
		return all
	}
	_, err := middleware.New(middleware.Config{Store: s, Ban: threeStrikes(t), Rules: []middleware.Rule{
		{PolicyOf: unlimited, Policies: of("a", "b", "c"), Key: keyfunc.Const("k")},
		{Policy: of("d")[0], Key: keyfunc.Const("k")},
		{PolicyOf: unlimited, Policies: of("e", "f"), Key: keyfunc.Const("k")},
	}})
	if want := []string{"a d e ban", "b d f ban", "c d f ban"}; !slices.Equal(groups, want) {
		t.Errorf("asked for %q, want %q", groups, want)
	}
	want := "middleware.Config.Store: store: the whole\nmiddleware.Config.Store: a part of the whole\n" +
		"middleware.Config.Store: not c\nmiddleware.Config.Store: weir: c = 1: never c"
	if err == nil || err.Error() != want || !errors.Is(err, errPart) || !isFieldError(err) {
		t.Errorf("%v", err)
	}

	groups = nil // what is none, or stands there twice, it is not asked for
	_, err = middleware.New(middleware.Config{Store: s, Rules: []middleware.Rule{
		{Policy: &algorithms.Policy{}, Key: keyfunc.Const("k")}, {Key: keyfunc.Const("k")},
		{PolicyOf: unlimited, Policies: slices.Concat(of("a"), of("a"), make([]*algorithms.Policy, 1)), Key: keyfunc.Const("k")},
	}})
	if err == nil || !slices.Equal(groups, []string{"a"}) {
		t.Errorf("asked for %q, %v", groups, err)
	}
}
