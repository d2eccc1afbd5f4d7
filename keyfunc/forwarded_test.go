package keyfunc_test

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

func TestForwarded(t *testing.T) {
	const peer = "10.0.0.2"
	tests := []struct {
		lines []string
		want  string
	}{
		{[]string{"for=203.0.113.9"}, "203.0.113.9"},
		{[]string{"for=192.0.2.60;proto=http;by=203.0.113.43"}, "192.0.2.60"},
		{[]string{`For="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::17"},
		{[]string{`FOR="203.0.113.9:80"`}, "203.0.113.9"},
		{[]string{`fOr="203.0.113.9:_x.-1"`}, "203.0.113.9"},
		{[]string{`for="[2001:DB8::1]"`}, "2001:db8::1"},
		{[]string{`for="2001:db8::1"`}, "2001:db8::1"}, // without brackets: wrong, but clear
		{[]string{`for=[2001:db8::1]:80`}, "2001:db8::1"},
		{[]string{`for=203.0.113.9:80`}, "203.0.113.9"},
		{[]string{`for="[fe80::1%eth0]"`}, "fe80::1"},
		{[]string{"for=1.1.1.1, for=203.0.113.9,for=10.0.0.3"}, "203.0.113.9"},
		{[]string{"for=1.1.1.1", "for=203.0.113.9", "for=10.0.0.3, for=10.0.0.4", ""}, "203.0.113.9"},
		{[]string{"by=_a;\thost=x ;\t for = 203.0.113.9\t; proto=http , ,"}, "203.0.113.9"},
		{[]string{";;for=203.0.113.9;;"}, "203.0.113.9"},
		{[]string{`x=\;for=203.0.113.9`}, "203.0.113.9"}, // a backslash escapes in quotes only

		// Commas and semicolons in quotes.
		{[]string{`for=203.0.113.9;host="a,b", for=10.0.0.3;ext="c;d, for=1.1.1.1"`}, "203.0.113.9"},
		{[]string{`ext="; for=1.1.1.1;";for=203.0.113.9`}, "203.0.113.9"},
		{[]string{`ext=";\";for=1.1.1.1";for=203.0.113.9`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9;ext="a\"", for=10.0.0.3;ext="b\\"`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9;ext="\\\"," ,for=10.0.0.3;ext="\\\\,";b="\","`}, "203.0.113.9"},
		{[]string{`for=203.0.113.9;ext="";by=""`}, "203.0.113.9"},
		{[]string{`for="203\.0.113.\9"`}, "203.0.113.9"},
		{[]string{`for="\[2001:db8::1\]\:80"`}, "2001:db8::1"},
		{[]string{`for="203.0.113.9\"`}, peer},
		{[]string{`for="203.0.113.9\\"`}, peer},
		{[]string{`for="\"203.0.113.9\""`}, peer},

		// What is no address, and what has not one "for".
		{[]string{"for=1.1.1.1, for=unknown"}, peer},
		{[]string{`for=1.1.1.1, for="unknown:80"`}, peer},
		{[]string{"for=1.1.1.1, for=_hidden"}, peer},
		{[]string{"for=1.1.1.1, for=unknown, for=10.0.0.3"}, peer},
		{[]string{"for=1.1.1.1", "for=_hidden", "for=10.0.0.3"}, peer},
		{[]string{"for=1.1.1.1, proto=https"}, peer},
		{[]string{"for=1.1.1.1, ;"}, peer},
		{[]string{"for=1.1.1.1, x"}, peer},
		{[]string{"for=1.1.1.1, 203.0.113.9"}, peer},
		{[]string{"for=1.1.1.1, for"}, peer},
		{[]string{"for=1.1.1.1, for="}, peer},
		{[]string{`for=1.1.1.1, for=""`}, peer},
		{[]string{`for=1.1.1.1, for="`}, peer},
		{[]string{`for=1.1.1.1, for="\`}, peer},
		{[]string{"for=1.1.1.1", `x="\`}, peer},
		{[]string{"for=1.1.1.1, forx=203.0.113.9"}, peer},
		{[]string{`for=1.1.1.1, "for"=203.0.113.9`}, peer},
		{[]string{"for=1.1.1.1, for=203.0.113.9;for=203.0.113.9"}, peer},
		{[]string{"for=1.1.1.1, for=203.0.113.9;by=_a;FOR=203.0.113.8"}, peer},
		{[]string{"for=1.1.1.1, for=203.0.113.9;for"}, peer},
		{[]string{"for=1.1.1.1, for=for=203.0.113.9"}, peer},
		{[]string{`for=1.1.1.1, for="203.0.113.9" x`}, peer},
		{[]string{`for=1.1.1.1, for=" 203.0.113.9"`}, peer},
		{[]string{"for=1.1.1.1, for=0.0.0.0"}, peer},
		{[]string{`for=1.1.1.1, for="203.0.113.9:"`}, peer},
		{[]string{`for=1.1.1.1, for="203.0.113.9:_"`}, peer},
		{[]string{`for=1.1.1.1, for="203.0.113.9:_a,b"`}, peer},
		{[]string{"for=10.0.0.4, for=10.0.0.3"}, peer},
		{[]string{"", " ", ",\t,"}, peer},
		{nil, peer},

		// What a client has left open is to the left.
		{[]string{`for=", for=203.0.113.9`}, "203.0.113.9"},
		{[]string{`for=1.1.1.1;host=", for=203.0.113.9;host="a"`}, "203.0.113.9"},
		{[]string{`for=1.1.1.1;host="\, for="203.0.113.9:1"`}, "203.0.113.9"},
		{[]string{`",for="203.0.113.9", for=10.0.0.3;by="[2001:db8::3]"`}, "203.0.113.9"},
		{[]string{`for=1.1.1.1;a="`, "for=203.0.113.9"}, "203.0.113.9"},
		{[]string{`\`, `for="203.0.113.9"`}, "203.0.113.9"},
		{[]string{`",",for=203.0.113.9`}, "203.0.113.9"},
	}
	tr := made(t, keyfunc.Proxies{CIDRs: []string{"10.0.0.0/8"}, Header: "Forwarded"})
	for _, tt := range tests {
		wantClient(t, "Forwarded", tr, tt.want, headers("10.0.0.2:1", "Forwarded", tt.lines...))
	}
	counted := made(t, keyfunc.Proxies{Unix: true, Hops: 2, Header: "Forwarded"})
	for line, want := range map[string]string{
		"for=1.1.1.1, for=203.0.113.9;host=\"a,b\", proto=https": "203.0.113.9",
		"for=203.0.113.9, , for=unknown,":                        "203.0.113.9",
		"for=203.0.113.9;host=\",\"":                             "",
		"for=203.0.113.9, by=_x, for=10.0.0.3":                   "",
	} {
		wantClient(t, "counted", counted, want, headers("@", "Forwarded", line))
	}
}

// The grammar of RFC 7239 §4 and §6, as it stands there. Go's regexp takes a
// byte that is no UTF-8 for a character, which obs-text may be.
const (
	tokenRE  = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
	quotedRE = `"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*"`
	pairRE   = `(` + tokenRE + `)=(` + tokenRE + `|` + quotedRE + `)`
	portRE   = `(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?`
)

var (
	elementRE = regexp.MustCompile(`^[ \t]*((?:` + pairRE + `)?(?:;(?:` + pairRE + `)?)*)[ \t]*(?:,|$)`)
	pairsRE   = regexp.MustCompile(pairRE)
	escapeRE  = regexp.MustCompile(`(?s)\\(.)`)
	addressRE = regexp.MustCompile(`^(?:([0-9]{1,3}(?:\.[0-9]{1,3}){3})|\[([0-9A-Fa-f:.]+)\])` + portRE + `$`)
	unknownRE = regexp.MustCompile(`^(?:unknown|_[A-Za-z0-9._-]+)` + portRE + `$`)
)

// forNodes reads a list as the RFC has it, from left to right: the values of
// "for" of its elements, each none, one or several. ok tells that the list is
// well-formed.
func forNodes(line string) (nodes [][]string, ok bool) {
	for {
		m := elementRE.FindStringSubmatch(line)
		if m == nil {
			return nil, false
		}
		if m[1] != "" {
			var values []string
			for _, pair := range pairsRE.FindAllStringSubmatch(m[1], -1) {
				if strings.ToLower(pair[1]) != "for" {
					continue
				}
				v := pair[2]
				if v[0] == '"' {
					v = escapeRE.ReplaceAllString(v[1:len(v)-1], "$1")
				}
				values = append(values, v)
			}
			nodes = append(nodes, values)
		}
		more := strings.HasSuffix(m[0], ",")
		if line = line[len(m[0]):]; !more {
			return nodes, true
		}
	}
}

// forwardedClient is the client by the book, or "" for the peer. ok tells that
// the book says so.
func forwardedClient(lines []string, proxies netip.Prefix, hops int) (client string, ok bool) {
	var nodes [][]string
	for _, line := range lines {
		n, ok := forNodes(line)
		if !ok {
			return "", false
		}
		nodes = append(nodes, n...)
	}
	if hops > 0 {
		if len(nodes) < hops {
			return "", true
		}
		nodes = nodes[len(nodes)-hops:][:1]
	}
	for _, values := range slices.Backward(nodes) {
		if len(values) != 1 || unknownRE.MatchString(values[0]) {
			return "", true
		}
		m := addressRE.FindStringSubmatch(values[0])
		if m == nil {
			return "", false // no node of the RFC
		}
		a, err := netip.ParseAddr(m[1] + m[2])
		if err != nil || a.Unmap().IsUnspecified() {
			return "", true
		}
		if a = a.Unmap(); hops > 0 || !proxies.Contains(a) {
			return a.String(), true
		}
	}
	return "", true
}

// listOf makes a well-formed list of what bytes choose: pairs, and in turn with
// them what is between.
func listOf(chosen []byte) string {
	names := []string{"for", "For", "FOR", "for", "for", "by", "host", "x"}
	values := []string{
		"203.0.113.9", `"203.0.113.9:80"`, `"203.0.113.9:_x"`, `"[2001:db8::1]:80"`, `"[2001:DB8::1]"`, "198.51.100.1", `"\198.51.100\.1"`,
		"10.0.0.3", "10.0.0.4", "10.0.0.5", `"10.0.0.4:1"`, `"10.0.0.4:_x"`, `"[::ffff:10.0.0.5]"`, `"[::ffff:a00:5]:80"`, `"[::ffff:cb00:7109]"`,
		"unknown", "_hidden", `"unknown:80"`, `"_hidden:_x"`, "0.0.0.0", `"[::]"`, "999.0.0.1", `"[12345::]"`,
		"https", `""`, `"a,b;for=1.1.1.1,c"`, `"\","`, `"\\"`, `"\\\","`, `",for=203.0.113.8;x=\""`, "\"\xff é\t\"", `";"`,
	}
	between := []string{",", ", ", ",", ", ", ";", ";", ";;", "\n", " ,\t,", ",\n\n ", ";,;"}
	var b strings.Builder
	for i, c := range chosen {
		if i%2 == 0 {
			b.WriteString(names[c%8] + "=" + values[c/8])
		} else {
			b.WriteString(between[int(c)%len(between)])
		}
	}
	return b.String()
}

// FuzzForwarded holds the search from right to left to a reference that reads
// from left to right, for headers that are well-formed; and any that shows a
// client shows the same one behind whatever text.
func FuzzForwarded(f *testing.F) {
	for _, raw := range []string{
		"", " ", ",", ";", "\n\n",
		"for=192.0.2.60;proto=http;by=203.0.113.43",
		`For="[2001:db8:cafe::17]:4711"`,
		"for=192.0.2.43, for=198.51.100.17",
		`for=_hidden, for=_SEVKISEK`,
		`for="_gazonk"`,
		"for=203.0.113.9, for=unknown, for=10.0.0.3",
		"for=203.0.113.9\nfor=10.0.0.3, by=_x\nfor=10.0.0.4",
		`for=203.0.113.9;ext="a,b;c\", for=1.1.1.1", for=10.0.0.3;ext="\\"`,
		`for="203\.0.113.9", for="10.0.0.3:_a-b"`,
		`for="[::ffff:10.0.0.3]";for=1.1.1.1`,
		`for=", for=203.0.113.9`,
	} {
		f.Add(raw, []byte{0, 21, 8, 4, 18, 9, 40}, uint8(0))
		f.Add(raw, []byte(raw), uint8(2))
	}
	const peer = "10.0.0.2"
	proxies := netip.MustParsePrefix("10.0.0.0/8")
	trusts := make([]keyfunc.Trust, 5)
	for hops := range trusts {
		trusts[hops] = made(f, keyfunc.Proxies{CIDRs: []string{proxies.String()}, Hops: hops, Header: "Forwarded"})
	}
	f.Fuzz(func(t *testing.T, raw string, chosen []byte, hops uint8) {
		hops %= uint8(len(trusts))
		client := func(lines ...string) string {
			a, err := trusts[hops].ClientIP(headers(peer+":80", "Forwarded", lines...))
			if err != nil || !a.IsValid() || a.Zone() != "" || a.Is4In6() || a.IsUnspecified() {
				t.Fatalf("%q: got %v, %v", lines, a, err)
			}
			return a.String()
		}
		for i, text := range []string{raw, listOf(chosen)} {
			if len(text) > 1000 {
				continue // that only the end is looked at is another test's
			}
			lines := strings.Split(text, "\n")
			got := client(lines...)
			want, ok := forwardedClient(lines, proxies, int(hops))
			for _, line := range lines {
				if _, ok := forNodes(line); !ok && i == 1 {
					t.Errorf("the reference doesn't take %q", line)
				}
			}
			if ok && got != want && (want != "" || got != peer) {
				t.Errorf("%q, hops %d: got %s, want %q", lines, hops, got, want)
			}
			if got == peer || hops > 0 && !ok {
				continue // more text can hold a client, or turn blanks into elements
			}
			for _, left := range []string{"for=198.51.100.66", `for="`, `"`, `\`, "unknown", `x="\`, raw} {
				if k := client(append([]string{left}, lines...)...); k != got {
					t.Errorf("%q gives %s, but %s behind the line %q", lines, got, k, left)
				}
				if !ok {
					continue // a quote that is left open goes on into the text
				}
				longer := slices.Clone(lines)
				longer[0] = left + "," + longer[0]
				if k := client(longer...); k != got {
					t.Errorf("%q gives %s, but %s behind the text %q", lines, got, k, left)
				}
			}
		}
	})
}
