package casetest

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/storetest"
)

const (
	second = time.Second
	hour   = time.Hour
)

// world is a store under one case and one algorithm. Times are seconds after a
// start that is a multiple of every window.
type world struct {
	*testing.T
	algorithm algorithms.Algorithm
	store     store.Store
	clock     *storetest.Clock
	start     time.Time
}

// at sets the time to some seconds after the start, to the microsecond.
func (w *world) at(seconds float64) {
	w.after(time.Duration(math.Round(seconds*1e6)) * time.Microsecond)
}

func (w *world) after(d time.Duration) { w.clock.Set(w.start.Add(d)) }

func per(count int64, period time.Duration, burst int64) algorithms.Limit {
	return algorithms.Limit{Count: count, Period: period, Burst: burst}
}

func (w *world) policy(l algorithms.Limit) *algorithms.Policy { w.Helper(); return w.named("p", l) }

func (w *world) named(name string, l algorithms.Limit) *algorithms.Policy {
	w.Helper()
	return policy(w.T, name, w.algorithm, l)
}

func (w *world) take(p *algorithms.Policy, cost int64) algorithms.Result {
	w.Helper()
	return take(w.T, w.store, p, "k", cost)
}

// passed is how many of so many calls pass.
func (w *world) passed(p *algorithms.Policy, calls int) (n int) {
	w.Helper()
	for range calls {
		if !w.take(p, 1).Limited {
			n++
		}
	}
	return n
}

func (w *world) want(what string, got, want any) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// each makes one charge of each cost and wants these answers.
func (w *world) each(p *algorithms.Policy, costs []int64, passes []bool, remaining []int64) {
	w.Helper()
	for i, cost := range costs {
		r := w.take(p, cost)
		if r.Limited == passes[i] || remaining != nil && r.Remaining != remaining[i] {
			w.Errorf("call %d, cost %d: %+v; want pass %v, remaining %v", i+1, cost, r, passes[i], remaining)
		}
	}
}

// passes makes one call at each of these seconds and wants these to pass.
func (w *world) passes(p *algorithms.Policy, at []float64, passes []bool) {
	w.Helper()
	for i, t := range at {
		w.at(t)
		if r := w.take(p, 1); r.Limited == passes[i] {
			w.Errorf("at %v: %+v; want pass %v", t, r, passes[i])
		}
	}
}

// seconds is a wait as Retry-After has it: whole, and rounded up.
func seconds(d time.Duration) int64 { return int64((d + second - 1) / second) }

// refused wants limits that a constructor refuses, naming a field of the limit.
func (w *world) refused(field string, limits ...algorithms.Limit) {
	w.Helper()
	want := "Limit." + field
	if _, ban := w.algorithm.(AnyBan); ban { // a ban's numbers are its own
		want = map[string]string{"Count": "Ban.Strikes", "Period": "Ban.Within", "Burst": "Limit"}[field]
	}
	for _, l := range limits {
		p, err := algorithms.NewPolicy("p", w.algorithm, l)
		var mistake *algorithms.FieldError
		if p != nil || !errors.As(err, &mistake) || mistake.Field != want {
			w.Errorf("%+v: error %v; want one that names %s", l, err, want)
		}
	}
}

// refusedOr is a policy of l, or nil where that is refused as a mistake.
func (w *world) refusedOr(l algorithms.Limit) *algorithms.Policy {
	w.Helper()
	p, err := algorithms.NewPolicy("p", w.algorithm, l)
	var mistake *algorithms.FieldError
	if err != nil && (p != nil || !errors.As(err, &mistake)) {
		w.Fatalf("%+v: %v, error %v", l, p, err)
	}
	return p
}

func (w *world) unparsable(texts ...string) {
	w.Helper()
	for _, s := range texts {
		l, err := algorithms.ParseLimit(s)
		var mistake *algorithms.FieldError
		if !errors.As(err, &mistake) {
			w.Errorf("%q is read as %+v, error %v", s, l, err)
		}
	}
}
