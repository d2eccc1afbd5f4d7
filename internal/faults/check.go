package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirgo/weir/algorithms"
)

// bound is the most units that a policy lets through in a span of time, as its
// algorithm documents.
func bound(p *algorithms.Policy, span time.Duration) int64 {
	l := p.Limit()
	if l.Burst == 0 {
		l.Burst = l.Count
	}
	periods := int64(span / l.Period)
	switch p.Algorithm().Name() {
	case "fixed-window":
		return l.Count * (int64((span+l.Period-1)/l.Period) + 1)
	case "sliding-log":
		return l.Count * (periods + 1)
	case "sliding-counter":
		l.Burst = l.Count
	}
	return l.Burst + int64(float64(l.Count)*float64(span)/float64(l.Period))
}

// anew is what more it lets through where its state is lost once.
// Two spans instead of one let through this much more together.
func anew(p *algorithms.Policy) int64 { return bound(p, 1) }

// most is what is documented of a policy: that of the store, anew for each loss of
// its state, again for the time of a second master, and that of the memory of each
// replica.
func most(p *algorithms.Policy, how policy, span time.Duration, troubles []trouble) int64 {
	n := bound(p, span)
	for _, t := range troubles {
		n += int64(t.losses) * anew(p)
		if t.split {
			n += bound(p, t.until-t.from)
		}
	}
	if how == fallback {
		n += replicas * bound(part(p), span)
	}
	return n
}

// part is a policy as store.Divide makes it.
func part(p *algorithms.Policy) *algorithms.Policy {
	l := p.Limit()
	l.Count /= replicas
	l.Burst /= replicas
	return limit(p.Name(), p.Algorithm(), l)
}

// trouble is when something was wrong with the servers.
type trouble struct {
	from, until time.Duration // until limiting was right again
	losses      int           // of state, that are documented
	split       bool          // there may have been two masters
}

// check is what is wrong with the answers that a stack gave.
func check(how policy, records []record, troubles []trouble) (wrong []string) {
	complain := func(format string, args ...any) {
		if len(wrong) < 10 {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	var over time.Duration // the last trouble was
	for _, t := range troubles {
		over = max(over, t.until)
	}
	again := make([]int, len(targets)) // admissions by the store after that
	var first, last time.Duration
	admitted := make([]int64, len(targets))
	for i, r := range records {
		if i == 0 || r.from < first {
			first = r.from
		}
		last = max(last, r.to)
		p := targets[r.target].policy
		switch {
		case r.status == http.StatusOK && r.served == 1 && r.decided:
			admitted[r.target]++
			if r.from > over {
				again[r.target]++
			}
		case r.status == http.StatusOK && r.served == 1 && how == open:
		case r.status == http.StatusTooManyRequests && r.served == 0 && r.denied && p != quiet:
		case r.status == http.StatusServiceUnavailable && r.served == 0 && (how == closed || r.left):
		default:
			complain("%v under %s: %+v", p, how, r)
		}
		if took := r.to - r.from; took > hang {
			complain("a decision took %v", took)
		}
	}
	for i, n := range again {
		if len(troubles) > 0 && n == 0 {
			complain("%s is never admitted after the trouble", targets[i].key)
		}
	}
	for i, n := range admitted {
		if documented := most(targets[i].policy, how, last-first, troubles); n > documented {
			complain("%s let %d through in %v with %+v; documented are at most %d", targets[i].key, n, last-first, troubles, documented)
		}
	}
	return wrong
}

// hang is the time by which a decision is not late but lost, on any machine.
const hang = 5 * time.Second
