package keyfunc_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
)

const phoneBody = `{"phone":"+12025550142"}` // 24 bytes

// source is a body that notes how it is read.
type source struct {
	io.Reader
	reads   int // calls
	given   int // bytes
	largest int // the most that was asked for
	closed  int
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.reads++
	s.given += n
	s.largest = max(s.largest, len(p))
	return n, err
}

func (s *source) Close() error { s.closed++; return nil }

// bodyRequest is a POST with a body of unknown length.
func bodyRequest(body io.Reader) *http.Request {
	return httptest.NewRequest("POST", "/", io.NopCloser(body))
}

var errCut = errors.New("cut off at 203.0.113.7:80")

// fuzzRequest sends a body in one of 16 ways. It ends in the error.
func fuzzRequest(sent []byte, mode uint8) (*http.Request, error) {
	var body io.Reader = bytes.NewReader(sent)
	var end error
	if mode&1 != 0 {
		end = errCut
		body = io.MultiReader(body, iotest.ErrReader(end))
	}
	if mode&2 != 0 {
		body = iotest.OneByteReader(body)
	}
	if mode&4 != 0 {
		body = iotest.DataErrReader(body)
	}
	r := bodyRequest(body)
	if mode&8 != 0 {
		r.ContentLength = int64(len(sent))
	}
	return r, end
}

// wantBody holds what the handler reads against what the client sent.
func wantBody(t *testing.T, r *http.Request, sent string, end error) {
	t.Helper()
	got, err := io.ReadAll(r.Body)
	if string(got) != sent || err != end {
		t.Errorf("the handler reads %q, %v; want %q, %v", got, err, sent, end)
	}
	if n, again := r.Body.Read(make([]byte, 1)); n != 0 || end != nil && again != end || end == nil && again != io.EOF {
		t.Errorf("the handler reads on and gets %d, %v", n, again)
	}
}

func TestBodyHandedOn(t *testing.T) {
	whole := func(s string) io.Reader { return strings.NewReader(s) }
	cut := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s), iotest.ErrReader(errCut)) }
	for _, tt := range []struct {
		sent string
		from func(string) io.Reader
		max  int64
		want error // nil: the phone
		end  error
	}{
		{phoneBody, whole, 0, nil, nil},
		{phoneBody, whole, 24, nil, nil},
		{phoneBody, whole, math.MaxInt64, nil, nil},
		{phoneBody, whole, 23, keyfunc.ErrBodyTooLong, nil},
		{phoneBody, whole, 1, keyfunc.ErrBodyTooLong, nil},
		{phoneBody + strings.Repeat(" ", 64<<10-24), whole, 0, nil, nil},
		{phoneBody + strings.Repeat(" ", 64<<10-23), whole, 0, keyfunc.ErrBodyTooLong, nil},
		{phoneBody + strings.Repeat(" ", 1<<20), whole, 2 << 20, nil, nil},
		{phoneBody + strings.Repeat(" ", 1<<20), whole, 0, keyfunc.ErrBodyTooLong, nil},
		{phoneBody, cut, 0, errCut, errCut},
		{phoneBody, cut, 24, errCut, errCut},
		{phoneBody, cut, 23, keyfunc.ErrBodyTooLong, errCut},
		{"", cut, 0, errCut, errCut},
		{"", whole, 0, keyfunc.ErrNoKey, nil},
		{"no JSON", whole, 0, keyfunc.ErrNoKey, nil},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole":   func(r io.Reader) io.Reader { return r },
			"bytes":   iotest.OneByteReader,
			"halves":  iotest.HalfReader,
			"dataErr": iotest.DataErrReader,
		} {
			for _, known := range []bool{false, true} {
				s := &source{Reader: wrap(tt.from(tt.sent))}
				r := bodyRequest(s)
				r.Body = s
				if known {
					r.ContentLength = int64(len(tt.sent))
				}
				length := r.ContentLength
				k, err := keyfunc.Body{Max: tt.max}.JSON("phone")(r)
				if (tt.want == nil) != (k == "+12025550142") || (tt.want == nil) != (err == nil) || err != nil && (!errors.Is(err, tt.want) || !errors.Is(err, keyfunc.ErrNoKey)) {
					t.Errorf("%s, %d bytes, Max %d, length known %v: got %q, %v; want %v", name, len(tt.sent), tt.max, known, k, err, tt.want)
				}
				if err != nil && strings.Contains(err.Error(), "203.0.113.7") {
					t.Errorf("the error has an address: %v", err)
				}
				if tt.max < math.MaxInt64 && tt.max > 0 && int64(s.given) > tt.max+1 {
					t.Errorf("%s, Max %d: %d bytes read", name, tt.max, s.given)
				}
				wantBody(t, r, tt.sent, tt.end)
				if r.ContentLength != length {
					t.Errorf("ContentLength is %d, was %d", r.ContentLength, length)
				}
				if err := r.Body.Close(); err != nil || s.closed != 1 {
					t.Errorf("closed %d times, %v", s.closed, err)
				}
			}
		}
	}
}

// The slices that the body is read into tell how much is allocated.
func TestBodyMemory(t *testing.T) {
	for _, tt := range []struct {
		length  int64
		sent    int
		max     int64
		largest int
	}{
		{24, 24, 0, 25},
		{24, 24, 24, 25},
		{64 << 10, 24, 0, 64<<10 + 1},         // what most can be
		{10 << 20, 24, 20 << 20, 64<<10 + 1},  // says much, sends little
		{-1, 24, 0, 512},                      // says nothing
		{-1, 1 << 20, 10 << 10, 5<<10 + 1},    // the last of it
		{11, 24, 0, 24},                       // says less than it sends
		{-1, 1 << 20, 100, 101},               // never more than Max and one
		{-1, 1 << 20, math.MaxInt64, 1 << 20}, // doubled
	} {
		s := &source{Reader: io.MultiReader(strings.NewReader(phoneBody), strings.NewReader(strings.Repeat(" ", max(tt.sent-24, 0))))}
		r := bodyRequest(nil)
		r.Body, r.ContentLength = s, tt.length
		_, _ = keyfunc.Body{Max: tt.max}.JSON("phone")(r)
		if s.largest > tt.largest {
			t.Errorf("length %d, sent %d, Max %d: %d bytes asked for, want at most %d", tt.length, tt.sent, tt.max, s.largest, tt.largest)
		}
		if tt.length == 24 && s.reads > 2 {
			t.Errorf("%d reads", s.reads)
		}
	}
}

func TestBodyTooLongByContentLength(t *testing.T) {
	s := &source{Reader: strings.NewReader(phoneBody)}
	r := bodyRequest(nil)
	r.Body, r.ContentLength = s, 24
	k, err := keyfunc.Body{Max: 23}.JSON("phone")(r)
	if k != "" || !errors.Is(err, keyfunc.ErrBodyTooLong) || !errors.Is(err, keyfunc.ErrNoKey) || s.reads > 0 || r.Body != s {
		t.Errorf("got %q, %v after %d reads", k, err, s.reads)
	}
	f := keyfunc.Body{Max: 23}.JSON("phone")
	if n := testing.AllocsPerRun(100, func() { _, _ = f(r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMaxBytesReader(t *testing.T) {
	for _, limit := range []int64{0, 1, 23} {
		r := bodyRequest(strings.NewReader(phoneBody))
		r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, limit)
		if k, err := keyfunc.JSON("phone")(r); k != "" || err != keyfunc.ErrBodyTooLong {
			t.Errorf("limit %d: got %q, %v", limit, k, err)
		}
		got, err := io.ReadAll(r.Body)
		if tooLong := (*http.MaxBytesError)(nil); string(got) != phoneBody[:limit] || !errors.As(err, &tooLong) {
			t.Errorf("limit %d: the handler reads %q, %v", limit, got, err)
		}
	}
}

func TestNoBody(t *testing.T) {
	for name, f := range map[string]keyfunc.Func{"JSON": keyfunc.JSON("phone"), "Form": keyfunc.Form("phone")} {
		for _, body := range []io.ReadCloser{nil, http.NoBody} {
			r := httptest.NewRequest("POST", "/", nil)
			r.Body = body
			k, err := f(r)
			if k != "" || !errors.Is(err, keyfunc.ErrNoKey) || errors.Is(err, keyfunc.ErrBodyTooLong) || r.Body != body {
				t.Errorf("%s: got %q, %v, body %v", name, k, err, r.Body)
			}
			if n := testing.AllocsPerRun(100, func() { _, _ = f(r) }); n > 0 && name == "JSON" {
				t.Errorf("%s: %v allocations", name, n)
			}
		}
	}
}

func TestCompressed(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  bool
	}{
		{nil, true}, {[]string{""}, true}, {[]string{"identity"}, true}, {[]string{" Identity "}, true},
		{[]string{"gzip"}, false}, {[]string{"identity", "br"}, false}, {[]string{"identity, gzip"}, false},
	} {
		s := &source{Reader: strings.NewReader(phoneBody)}
		r := bodyRequest(nil)
		r.Body, r.Header["Content-Encoding"] = s, tt.lines
		k, err := keyfunc.JSON("phone")(r)
		if (k != "") != tt.want || tt.want != (err == nil) || !tt.want && (!errors.Is(err, keyfunc.ErrNoKey) || s.reads > 0) {
			t.Errorf("%q: got %q, %v after %d reads", tt.lines, k, err, s.reads)
		}
		wantBody(t, r, phoneBody, nil)
	}
}

func TestBodyMistakes(t *testing.T) {
	for _, tt := range []struct {
		f    keyfunc.Func
		want []string
	}{
		{keyfunc.JSON("a", "b"), nil},
		{keyfunc.Form("a"), nil},
		{keyfunc.JSON(), []string{"keyfunc.JSON: path"}},
		{keyfunc.JSON("a", "", "b", ""), []string{"keyfunc.JSON: path[1]", "keyfunc.JSON: path[3]"}},
		{keyfunc.Form(""), []string{"keyfunc.Form: name"}},
		{keyfunc.Body{Max: -1}.JSON("a"), []string{"keyfunc.Body.Max"}},
		{keyfunc.Body{Max: -1}.JSON(), []string{"keyfunc.Body.Max", "keyfunc.JSON: path"}},
		{keyfunc.Body{Max: math.MinInt64}.Form(""), []string{"keyfunc.Body.Max", "keyfunc.Form: name"}},
	} {
		err := keyfunc.Validate(tt.f)
		var got []string
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				got = append(got, e.(*algorithms.FieldError).Field)
			}
		}
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("got %q (%v), want %q", got, err, tt.want)
		}
	}
}
