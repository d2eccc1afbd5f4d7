package keyfunc_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// in is In where it must work.
func in(t testing.TB, tr keyfunc.Trust, cidrs ...string) keyfunc.Match {
	t.Helper()
	m, err := keyfunc.In(tr, cidrs...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestIn(t *testing.T) {
	tests := []struct {
		cidrs   []string
		in, not []string // clients
	}{
		{[]string{"10.0.0.0/8"},
			[]string{"10.0.0.0", "10.255.255.255", "::ffff:10.0.0.1", "[::ffff:a00:1%x]:80"},
			[]string{"9.255.255.255", "11.0.0.0", "::10.0.0.1", "64:ff9b::10.0.0.1", "a00::1", "::a00:1"}},
		{[]string{"192.0.2.1"}, []string{"192.0.2.1:80"}, []string{"192.0.2.0", "192.0.2.2"}},
		{[]string{"::ffff:192.0.2.1"}, []string{"192.0.2.1"}, []string{"192.0.2.0", "192.0.2.2"}},
		{[]string{"::ffff:10.0.0.0/104"}, []string{"10.0.0.1"}, []string{"11.0.0.0"}},
		{[]string{"::ffff:0:0/96"}, []string{"0.0.0.1", "255.255.255.255"}, []string{"::1", "2001:db8::1"}},
		{[]string{"0.0.0.0/0"}, []string{"0.0.0.1", "255.255.255.255", "::ffff:1.2.3.4"}, []string{"::1", "ffff::"}},
		{[]string{"::/0"}, []string{"::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::fffe:0:0", "64:ff9b::1.2.3.4"}, []string{"1.2.3.4", "::ffff:1.2.3.4"}},
		{[]string{"0.0.0.0/0", "::/0"}, []string{"1.2.3.4", "::1"}, nil},
		{[]string{"0.0.0.0/1", "128.0.0.0/1"}, []string{"0.0.0.1", "127.255.255.255", "128.0.0.0"}, []string{"::1"}},
		{[]string{"255.255.255.255", "::"}, []string{"255.255.255.255"}, []string{"::1", "255.255.255.254"}},
		{[]string{"255.255.255.0/24", "255.255.255.255", "::/127"}, []string{"255.255.255.255", "::1"}, []string{"::2", "255.255.254.255"}},
		{[]string{"2001:db8::/32"}, []string{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"}, []string{"2001:db7:ffff::", "2001:db9::"}},
		{[]string{"2001:db8::1/128", "fe80::/10"}, []string{"2001:db8::1", "fe80::1%eth0"}, []string{"2001:db8::2", "fec0::"}},
		// Overlapping, touching, one inside another, in any order, twice.
		{[]string{"10.2.0.0/16", "10.0.0.0/15", "10.0.1.0/24", "10.4.0.0", "10.0.0.0/15"},
			[]string{"10.0.0.0", "10.0.2.0", "10.1.255.255", "10.2.0.0", "10.2.255.255", "10.4.0.0"},
			[]string{"9.255.255.255", "10.3.0.0", "10.3.255.255", "10.4.0.1"}},
		{[]string{"10.0.0.0/8", "10.0.0.1", "10.200.0.0/16"}, []string{"10.0.0.2", "10.201.0.0", "10.255.255.255"}, []string{"11.0.0.0"}},
		{[]string{"192.0.2.3", "192.0.2.1"}, []string{"192.0.2.1", "192.0.2.3"}, []string{"192.0.2.2"}},
	}
	for _, tt := range tests {
		m := in(t, keyfunc.Trust{}, tt.cidrs...)
		for want, clients := range map[bool][]string{true: tt.in, false: tt.not} {
			for _, c := range clients {
				if got, err := m(from(c)); got != want || err != nil {
					t.Errorf("%s in %q: got %v, %v; want %v", c, tt.cidrs, got, err, want)
				}
			}
		}
	}
}

// It goes by the client as the Trust finds it, and by no address that IP has no
// key for.
func TestInByTrust(t *testing.T) {
	m := in(t, trust(t, "10.0.0.0/8"), "192.0.2.0/24")
	for _, tt := range []struct {
		remote, xff string
		want        bool
	}{
		{"192.0.2.1:80", "198.51.100.1", true},
		{"198.51.100.1:80", "192.0.2.1", false},
		{"10.0.0.2:80", "192.0.2.1", true},
		{"10.0.0.2:80", "192.0.2.1, 198.51.100.1", false},
		{"10.0.0.2:80", "192.0.2.1, unknown", false},
		{"10.0.0.2:80", "", false},
	} {
		if got, err := m(from(tt.remote, "X-Forwarded-For: "+tt.xff)); got != tt.want || err != nil {
			t.Errorf("from %s with %q: got %v, %v; want %v", tt.remote, tt.xff, got, err, tt.want)
		}
	}
	all := in(t, keyfunc.Trust{}, "0.0.0.0/0", "::/0")
	for _, remote := range []string{"@", "", "0.0.0.0", "[::]:80", "<nil>"} {
		if got, err := all(from(remote, "X-Forwarded-For: 192.0.2.1")); got || !errors.Is(err, keyfunc.ErrNoKey) {
			t.Errorf("from %q: got %v, %v; want ErrNoKey", remote, got, err)
		}
	}
}

func TestInMistakes(t *testing.T) {
	for _, tt := range []struct {
		cidrs []string
		want  []string
	}{
		{nil, []string{"cidrs"}},
		{[]string{"10.0.0.0/8", "10.0.0.5/8", "x", "fe80::1%eth0", "", "::ffff:0:0/95", "10.0.0.0/33", "::1"},
			[]string{"cidrs[1]", "cidrs[2]", "cidrs[3]", "cidrs[4]", "cidrs[5]", "cidrs[6]"}},
		{[]string{"0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1"}, nil}, // to match everybody is no mistake
		{[]string{"10.0.0.1/0"}, []string{"cidrs[0]"}},
	} {
		m, err := keyfunc.In(keyfunc.Trust{}, tt.cidrs...)
		if got := fieldsOf(t, err); !slices.Equal(got, tt.want) {
			t.Errorf("%q: mistakes in %q, want %q: %v", tt.cidrs, got, tt.want, err)
		}
		if (m == nil) != (tt.want != nil) {
			t.Errorf("%q: the Match is nil: %v", tt.cidrs, m == nil)
		}
	}
	if _, err := keyfunc.In(keyfunc.Trust{}); !strings.Contains(err.Error(), "must name at least one") {
		t.Error(err)
	}
	cidrs := []string{"10.0.0.0/8"}
	m := in(t, keyfunc.Trust{}, cidrs...)
	cidrs[0] = "192.0.2.0/24"
	if got, err := m(from("10.0.0.1:1")); !got || err != nil {
		t.Errorf("after a change of the slice: %v, %v", got, err)
	}
}

func TestInAllocatesNothing(t *testing.T) {
	var cidrs []string
	for i := range 10_000 {
		cidrs = append(cidrs, fmt.Sprintf("10.%d.%d.0/25", i/256, i%256))
	}
	m := in(t, trust(t, "192.0.2.1"), cidrs...)
	r := from("192.0.2.1:1", "X-Forwarded-For: 198.51.100.1, 10.39.15.127")
	if got, err := m(r); !got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if n := testing.AllocsPerRun(100, func() { m(r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleIn() {
	monitors, err := keyfunc.In(keyfunc.Trust{}, "192.0.2.0/28", "2001:db8:1::/48")
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "192.0.2.7:5000"
	fmt.Println(monitors(r))
	r.RemoteAddr = "192.0.2.77:5000"
	fmt.Println(monitors(r))

	_, err = keyfunc.In(keyfunc.Trust{}, "192.0.2.7/28", "monitor.example.com")
	fmt.Println(err)
	// Output:
	// true <nil>
	// false <nil>
	// weir: cidrs[0] = "192.0.2.7/28": must have no bits set beyond /28: write 192.0.2.0/28 for the range or 192.0.2.7 for the address
	// weir: cidrs[1] = "monitor.example.com": must be an IP address, or a range such as 10.0.0.0/8; each of several is an element of its own
}
