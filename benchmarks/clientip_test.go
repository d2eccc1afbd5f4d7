package benchmarks

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	right     = "right"
	noWay     = "–" // the way is none for the case
	pass      = "no limit where the address is empty"
	emptyKey  = "empty key"                // of all whose address isn't found
	nilKey    = `key "<nil>"`              // the same
	forged    = "believes a forged header" // and counts for somebody else
	proxyKey  = "counts the proxy"         // and so all its clients in one
	perPort   = "one bucket per port"
	anyText   = "takes any text as a key"
	splits    = "splits a client"
	merges    = "merges clients"
	refuses   = "refuses"
	fails     = "fails"
	miscounts = "wrong statuses"

	split64     = "splits a /64"
	oneNAT64    = "one bucket for all of NAT64"
	oneMapped   = "one bucket for all IPv4-mapped"
	mappedApart = "counts an IPv4 and its mapped form apart"
)

// TestClientIP puts the cases to weir and to its peers. weir must be right on
// each; the peers must be as they were when this was written, so that a change
// is noticed.
//
// Keys are not compared with addresses, as each library writes them in its own
// way, but by what a limiter does with them: requests of one client must have
// one key, requests of two clients two. To the requests of a case, one of each
// client is added that comes straight from its address, without headers. An
// empty key is wrong, and so is the text of a nil address, as all callers share
// it whose address isn't found. The statuses are those of a counter by the key.
func TestClientIP(t *testing.T) {
	for _, w := range configured {
		if w.library == weirPath && w.wrong != nil {
			t.Error("the table has mistakes of weir's")
		}
	}
	for _, table := range []struct {
		name string
		ways []way
	}{
		{"Configured as the documentation says for the case", configured},
		{"As they come", asTheyCome},
	} {
		cells := make([][]string, len(clientIPCases))
		for i, c := range clientIPCases {
			for _, w := range table.ways {
				got, want := noWay, right
				key := w.set(t, c.proxies)
				if key != nil {
					var keys []string
					got, keys = c.judge(key)
					if f, ok := w.wrong[c.id]; ok {
						want = f
					}
					if got != want {
						t.Errorf("%s, %s (%s): %s, want %s; keys %q", c.id, w.library, w.used, got, want, keys)
					}
				}
				cells[i] = append(cells[i], got)
			}
		}
		t.Logf("%s:\n\n%s", table.name, markdown(t, table.ways, cells))
	}
}

// judge gives what is wrong with the keys for the case, or right.
func (c clientIPCase) judge(key takeKey) (verdict string, keys []string) {
	requests := slices.Clone(c.requests)
	for _, cr := range c.requests {
		if s := c.straight(cr.client); isAddr(cr.client) && !slices.ContainsFunc(requests[len(c.requests):], s.sameClient) {
			requests = append(requests, s)
		}
	}
	var faults []string
	fault := func(f string) {
		if !slices.Contains(faults, f) {
			faults = append(faults, f)
		}
	}
	used := map[string]int{}
	var statuses []int
	for _, cr := range requests {
		k, t := key(cr.request())
		keys = append(keys, k)
		if t == counted {
			used[k]++
			if f := c.faultOf(key, cr, k); f != "" {
				fault(f)
			}
		}
		switch {
		case t == uncounted:
			fault(pass)
		case t == failed:
			fault(fails)
		case t == refused && (isAddr(cr.client) || !c.refusable):
			fault(refuses)
		}
		statuses = append(statuses, status(t, used[k] <= c.limit))
	}
	// What is wrong between two requests is said where nothing is with one alone.
	if faults == nil {
		for i, a := range requests {
			for j, b := range requests[:i] {
				switch same := keys[i] == keys[j]; {
				case a.sameClient(b) && !same:
					fault(cmp.Or(c.split, splits))
				case !a.sameClient(b) && same && (isAddr(a.client) || isAddr(b.client)):
					fault(cmp.Or(c.merged, merges))
				}
			}
		}
	}
	// Where the keys are right the statuses are, if the case itself is.
	if faults == nil && c.statuses != nil && !slices.Equal(statuses[:len(c.requests)], c.statuses) {
		fault(miscounts)
	}
	if faults == nil {
		return right, keys
	}
	return strings.Join(faults, ", "), keys
}

// status is that of a request which a limiter treats so.
func status(t treatment, free bool) int {
	switch {
	case t == refused:
		return http.StatusBadRequest
	case t == failed:
		return http.StatusInternalServerError
	case t == counted && !free:
		return http.StatusTooManyRequests
	}
	return http.StatusOK
}

// faultOf tells what is wrong with k, the key of a request, if that can be told
// from it alone.
func (c clientIPCase) faultOf(key takeKey, cr clientRequest, k string) string {
	isKeyOf := func(other clientRequest) bool {
		o, _ := key(other.request())
		return k == o
	}
	isPeer := strings.HasPrefix(cr.remote, net.JoinHostPort(cr.client, ""))
	switch {
	case k == "":
		return emptyKey
	case k == "<nil>":
		return nilKey
	case cr.forged != "" && isKeyOf(c.straight(cr.forged)):
		return forged
	case !isAddr(cr.client):
		return ""
	case cr.lines != nil && !isPeer && isKeyOf(clientRequest{remote: cr.remote}):
		return proxyKey
	case isKeyOf(c.straight(cr.client)):
		return ""
	}
	if _, err := netip.ParseAddrPort(k); err == nil {
		return perPort
	}
	if !isAddr(strings.Trim(k, "[]")) {
		return anyText
	}
	return ""
}

// straight is a request of the client from its own address, without headers. On
// a Unix socket there is none: it is one that the proxy passes on.
func (c clientIPCase) straight(client string) clientRequest {
	if slices.Equal(c.proxies, unix) {
		return from(client, "@", "X-Forwarded-For: "+client)
	}
	return from(client, net.JoinHostPort(client, "1"))
}

func (cr clientRequest) sameClient(other clientRequest) bool { return cr.client == other.client }

func isAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// markdown writes the cells as a table, with a row for each case.
func markdown(t *testing.T, ways []way, cells [][]string) string {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(mod)) {
		if f := strings.Fields(line); len(f) == 2 {
			versions[f[0]] = " " + f[1]
		}
	}
	delete(versions, weirPath)
	var b strings.Builder
	b.WriteString("| case |")
	for _, w := range ways {
		fmt.Fprintf(&b, " %s%s: %s |", w.library, versions[w.library], w.used)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(ways)))
	for i, c := range clientIPCases {
		fmt.Fprintf(&b, "| %s %s | %s |\n", c.id, c.title, strings.Join(cells[i], " | "))
	}
	return b.String()
}
