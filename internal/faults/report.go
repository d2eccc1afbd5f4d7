package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// during sums up the answers in a time of trouble.
func during(records []record, t trouble) (o outcome) {
	var took []time.Duration
	for _, r := range records {
		if r.to < t.from || r.from > t.until || r.left {
			continue
		}
		took = append(took, r.to-r.from)
		switch r.status {
		case http.StatusOK:
			o.admitted++
		case http.StatusTooManyRequests:
			o.refused++
		default:
			o.errors++
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		o.p99, o.worst = took[len(took)*99/100], took[len(took)-1]
	}
	return o
}

func table(all []outcome) string {
	var s strings.Builder
	fmt.Fprintln(&s, "| fault | policy | admitted | refused | errors | p99 | recovery |\n|---|---|---:|---:|---:|---:|---:|")
	for i, o := range all {
		name := ""
		if i == 0 || all[i-1].fault.Name != o.fault.Name {
			name = o.fault.Name
		}
		fmt.Fprintf(&s, "| %s | %s | %d | %d | %d | %s | %s |\n", name, o.policy, o.admitted, o.refused, o.errors, ms(o.p99), ms(o.recovery))
	}
	return s.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }
