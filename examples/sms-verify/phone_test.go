package main

import "testing"

func TestNormalizePhone(t *testing.T) {
	for _, c := range []struct{ text, region, want string }{
		{"+12025550142", "US", alice},
		{"+12025550142", "", alice},
		{"tel:+1 (202) 555-0142", "", alice},
		{"202.555.0142", "US", alice},
		{"011 1 202 555 0142", "US", alice},
		{"+44 (0)7911 123456", "US", "+447911123456"},
		{"07911 123456", "GB", "+447911123456"},
		{"+393123456789", "US", "+393123456789"},
		{"+54 11 15 1234-5678", "US", "+5491112345678"},

		{"", "US", ""},
		{"tel:", "US", ""},
		{"2025550142", "", ""},
		{"911", "US", ""},
		{"+1202555014", "US", ""},
		{"+120255501420", "US", ""},
		{"+12025550142 x5", "US", ""},
		{"+12025550142,5", "US", ""},
		{"+12025550142;ext=5", "US", ""},
		{"+12025550142/+12025550143", "US", ""},
		{"call +12025550142", "US", ""},
		{"tel:2025550142;phone-context=+1", "US", ""},
		{"+1202555014２", "US", ""},
		{"+1 800 356 9377", "US", ""}, // free to call, nobody to read
		{"+19005550142", "US", ""},    // premium rate
		{"+390612345678", "US", ""},   // a fixed line
		{"+541123456789", "US", ""},   // a mobile there, written like a fixed line
	} {
		got, err := normalizePhone(c.text, c.region)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("normalizePhone(%q, %q) = %q, %v; want %q", c.text, c.region, got, err, c.want)
		}
	}
}

// FuzzNormalizePhone holds that what comes out is its own normal form: else one
// phone would have two keys.
func FuzzNormalizePhone(f *testing.F) {
	for _, s := range []string{alice, "(202) 555-0142", "+44 (0)7911 123456", "+541115123456 78", "+393123456789", "+5215512345678"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		phone, err := normalizePhone(s, "US")
		if err != nil {
			return
		}
		for _, region := range []string{"US", "DE", ""} {
			if again, err := normalizePhone(phone, region); again != phone || err != nil {
				t.Errorf("%q gives %q, and that gives %q, %v", s, phone, again, err)
			}
		}
	})
}

func TestMaskPhone(t *testing.T) {
	if got := maskPhone(alice); got != "***42" {
		t.Errorf("maskPhone gives %q", got)
	}
}
