package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

func policy(t *testing.T, name string) *algorithms.Policy {
	t.Helper()
	p, err := algorithms.NewPolicy(name, algorithms.GCRA{}, algorithms.PerMinute(5))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCheckReportsAllMistakes(t *testing.T) {
	p := policy(t, "p")
	charges := []store.Charge{
		{Policy: p, Key: "k", Cost: 1},
		{Cost: 1, Age: -1},
		{Policy: p, Key: "l", Cost: -1, Mode: store.Strike},
		{Policy: p, Key: "m", Mode: 9},
		{Policy: &algorithms.Policy{}, Key: "n"},
		{Policy: p, Key: "o", Cost: 1, Age: 1, Mode: store.Forget},
		{Policy: p, Key: "p", Age: -1, Mode: store.Forget},
	}
	err := store.Check(context.Background(), charges, make([]algorithms.Result, len(charges)))
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%v", err)
	}
	want := []string{"charges[1].Policy", "charges[1].Key", "charges[1].Age", "charges[2].Cost", "charges[3].Mode", "charges[4].Policy", "charges[5].Cost", "charges[5].Age", "charges[6].Age"}
	for i, e := range joined.Unwrap() {
		var mistake *algorithms.FieldError
		if !errors.As(e, &mistake) || i >= len(want) || mistake.Field != want[i] {
			t.Errorf("%v", e)
		}
	}
	if n := len(joined.Unwrap()); n != len(want) {
		t.Errorf("%d mistakes of %d", n, len(want))
	}
}

// There is one result for each charge, no more and no fewer.
func TestCheckCountsResults(t *testing.T) {
	charges := []store.Charge{{Policy: policy(t, "p"), Key: "k"}, {Policy: policy(t, "p"), Key: "l"}}
	for n := range 4 {
		err := store.Check(context.Background(), charges, make([]algorithms.Result, n))
		var mistake *algorithms.FieldError
		if errors.As(err, &mistake) != (n != 2) || n != 2 && (mistake.Field != "results" || mistake.Value != n) {
			t.Errorf("%d results for 2 charges: %v", n, err)
		}
	}
}

// A Strike takes or does nothing, a Forget does neither; a give-back is for the
// other modes.
func TestCheckCosts(t *testing.T) {
	for mode := store.Enforce; mode <= store.Forget; mode++ {
		for cost := int64(-1); cost <= 1; cost++ {
			c := []store.Charge{{Policy: policy(t, "p"), Key: "k", Cost: cost, Mode: mode}}
			err := store.Check(context.Background(), c, make([]algorithms.Result, 1))
			if (err == nil) != (mode < store.Strike || cost == 0 || mode == store.Strike && cost > 0) {
				t.Errorf("%v of %d: %v", mode, cost, err)
			}
		}
		c := []store.Charge{{Policy: policy(t, "p"), Key: "k", Age: 1, Mode: mode}}
		if err := store.Check(context.Background(), c, make([]algorithms.Result, 1)); (err != nil) != (mode == store.Forget) {
			t.Errorf("%v of an age: %v", mode, err)
		}
	}
}

func TestCheckDuplicates(t *testing.T) {
	p, samePolicy, q := policy(t, "p"), policy(t, "p"), policy(t, "q")
	for _, c := range []struct {
		a, b store.Charge
		want error
	}{
		{store.Charge{Policy: p, Key: "k"}, store.Charge{Policy: p, Key: "k", Cost: 1}, store.ErrDuplicate},
		{store.Charge{Policy: p, Key: "k"}, store.Charge{Policy: samePolicy, Key: "k"}, store.ErrDuplicate},
		{store.Charge{Policy: p, Key: "k"}, store.Charge{Policy: p, Key: "l"}, nil},
		{store.Charge{Policy: p, Key: "k"}, store.Charge{Policy: q, Key: "k"}, nil},
	} {
		if err := store.Check(context.Background(), []store.Charge{c.a, c.b}, make([]algorithms.Result, 2)); err != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, err)
		}
	}
}

func TestAgeMicros(t *testing.T) {
	for age, want := range map[time.Duration]int64{0: 0, 1: 1, time.Microsecond: 1, time.Microsecond + 1: 2, time.Hour: 3_600_000_000, 1<<63 - 1: 9_223_372_036_854_776} {
		if got := (&store.Charge{Age: age}).AgeMicros(); got != want {
			t.Errorf("%v: %d, want %d", age, got, want)
		}
	}
}

func TestModeString(t *testing.T) {
	for m, want := range map[store.Mode]string{store.Enforce: "enforce", store.Shadow: "shadow", store.Strike: "strike", store.Forget: "forget", 4: "unknown", 7: "unknown"} {
		if m.String() != want {
			t.Errorf("%q, want %q", m, want)
		}
	}
}

// spy sees what Take hands over.
type spy struct {
	charge store.Charge
	err    error
}

func (*spy) Validate(...*algorithms.Policy) error { return nil }

func (s *spy) Take(_ context.Context, charges []store.Charge, results []algorithms.Result) error {
	s.charge = charges[0]
	results[0] = algorithms.Result{Limit: 5, Remaining: 4}
	return s.err
}

func TestTake(t *testing.T) {
	s, p := &spy{}, policy(t, "p")
	r, err := store.Take(context.Background(), s, p, "k", 3)
	if err != nil || r != (algorithms.Result{Limit: 5, Remaining: 4}) || s.charge != (store.Charge{Policy: p, Key: "k", Cost: 3}) {
		t.Errorf("%+v, %v, charge %+v", r, err, s.charge)
	}
	s.err = errors.New("away")
	if r, err := store.Take(context.Background(), s, p, "k", 3); err != s.err || r != (algorithms.Result{}) {
		t.Errorf("after an error: %+v, %v", r, err)
	}
}
