package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"text/template"
	"time"
)

//go:embed faults.md.tmpl
var page string

func main() {
	var (
		out  = flag.String("out", "", "write the page to this file, and not to the standard output")
		only = flag.String("run", "", "the faults whose names match this expression, and not all")
		hold = flag.Duration("hold", 2*time.Second, "how long each fault lasts")
		long = flag.Duration("soak", 0, "make trouble at random for so long, instead of a page")
		seed = flag.Uint64("seed", 0, "of what is random; 0 means a new one, which is printed")
	)
	flag.Parse()
	*seed = cmp.Or(*seed, rand.Uint64())
	fmt.Fprintf(os.Stderr, "seed %d\n", *seed)
	if err := run(*out, *only, *hold, *long, *seed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pause is each worker's, on average, between two requests.
const pause = 25 * time.Millisecond

func run(out, only string, hold, long time.Duration, seed uint64) error {
	if long > 0 {
		return within(func(t testing.TB) { // all policies at the same time
			outcomes, strikes := soak(t, policies, 3*pause, long, seed)
			n := 0
			for name, times := range strikes {
				fmt.Printf("%4d %s\n", times, name)
				n += times
			}
			fmt.Printf("%d faults in %v, seed %d: nothing wrong\n", n, long, seed)
			for _, o := range outcomes {
				fmt.Printf("%s: %d admitted, %d refused, %d errors, p99 %v, longest %v\n", o.policy, o.admitted, o.refused, o.errors, o.p99, o.worst)
			}
		})
	}
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var all []outcome
	for _, f := range faults {
		if !match.MatchString(f.Name) {
			continue
		}
		for _, p := range policies {
			fmt.Fprintf(os.Stderr, "%s, %s\n", f.Name, p)
			err := within(func(t testing.TB) { all = append(all, once(t, f, []policy{p}, pause, hold, seed)...) })
			if err != nil {
				return err
			}
		}
	}
	text := &strings.Builder{}
	err = template.Must(template.New("").Parse(page)).Execute(text, map[string]any{
		"Table": table(all), "Faults": faults, "Workers": workers, "Replicas": replicas, "Deadline": deadline,
		"Cooldown": cooldown, "Hold": hold, "Pause": pause, "CPUs": runtime.NumCPU(), "Go": runtime.Version(), "Worst": ms(worst(all)), "Margin": margin,
	})
	if err != nil {
		return err
	}
	if out == "" {
		_, err = fmt.Print(text)
	} else {
		err = os.WriteFile(out, []byte(text.String()), 0o644)
	}
	return errors.Join(err, late(all))
}

// margin is what a busy machine may add to a deadline, and to the cool-down.
const margin = 250 * time.Millisecond

// late is what took longer than it may. The test does not ask: its machine may be busy.
func late(all []outcome) error {
	var errs []error
	for _, o := range all {
		if o.worst > deadline+margin {
			errs = append(errs, fmt.Errorf("%s, %s: a decision took %v", o.fault.Name, o.policy, o.worst))
		}
		tries := time.Duration(1)
		if o.fault.on == cluster { // the client has to find out about the nodes, too
			tries = 2
		}
		if o.recovery > tries*cooldown+margin {
			errs = append(errs, fmt.Errorf("%s, %s: limits were right again after %v", o.fault.Name, o.policy, o.recovery))
		}
	}
	return errors.Join(errs...)
}

// worst is the longest that a decision took.
func worst(all []outcome) (d time.Duration) {
	for _, o := range all {
		d = max(d, o.worst)
	}
	return d
}
