package keyfunc_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

const (
	urlencoded = "application/x-www-form-urlencoded"
	multi      = `multipart/form-data; boundary=b`
)

// parts is a multipart body. Each part is the end of the first line of its
// header, which may have more lines, and its content.
func parts(parts ...[2]string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--b\r\nContent-Disposition: form-data; " + p[0] + "\r\n\r\n" + p[1] + "\r\n")
	}
	return b.String() + "--b--\r\n"
}

type part = [2]string

var phonePart = part{`name="phone"`, "+1"}

var formTests = []struct{ method, query, contentType, body, want string }{
	{"POST", "", urlencoded, "phone=%2B1", "+1"},
	{"PUT", "", urlencoded, "phone=%2B1", "+1"},
	{"PATCH", "", urlencoded, "phone=%2B1", "+1"},
	{"POST", "a=b&c", urlencoded, "x=y&phone=%2B1&z&Fax=1", "+1"},
	{"POST", "", urlencoded, "ph%6Fne=%2B1", "+1"},
	{"POST", "", urlencoded, "phone=+a|b%20", " a|b "}, // as it stands
	{"POST", "", urlencoded, "phone=%ff", "\xff"},
	{"POST", "", urlencoded, "phone=1=2", "1=2"},
	{"POST", "", urlencoded, "&&phone=1&", "1"},
	{"POST", "", " Application/X-WWW-Form-URLencoded ; charset=utf-8", "phone=1", "1"},

	{"GET", "", urlencoded, "phone=1", ""},
	{"DELETE", "", urlencoded, "phone=1", ""},
	{"post", "", urlencoded, "phone=1", ""},
	{"", "", urlencoded, "phone=1", ""},
	{"POST", "", urlencoded, "phone=1&phone=2", ""},
	{"POST", "", urlencoded, "phone=1&phone=1", ""},
	{"POST", "", urlencoded, "phone=1&phone=", ""},
	{"POST", "", urlencoded, "phone&phone=1", ""},
	{"POST", "", urlencoded, "phone=1&ph%6fne=2", ""},
	{"POST", "", urlencoded, "phone=1&Phone=2", ""}, // gorilla's schema folds case
	{"POST", "", urlencoded, "Phone=2", ""},
	{"POST", "phone=2", urlencoded, "phone=1", ""},
	{"POST", "phone=1", urlencoded, "phone=1", ""},
	{"POST", "phone", urlencoded, "phone=1", ""},
	{"POST", "PHONE=2", urlencoded, "phone=1", ""},
	{"POST", "p%68one=2", urlencoded, "phone=1", ""},
	{"POST", "phone=1", urlencoded, "", ""},
	{"POST", "a=%zz", urlencoded, "phone=1", ""},
	{"POST", "a;phone=2", urlencoded, "phone=1", ""},
	{"POST", "", urlencoded, "phone=1&a=%zz", ""},
	{"POST", "", urlencoded, "phone=1;phone=2", ""},
	{"POST", "", urlencoded, "phone=1&a;b", ""},
	{"POST", "", urlencoded, "phone=1&phone=%zz", ""},
	{"POST", "", urlencoded, "phone=", ""},
	{"POST", "", urlencoded, "phone=+%09%C2%A0", ""},
	{"POST", "", urlencoded, "fax=1", ""},
	{"POST", "", urlencoded, `{"phone":"+1"}`, ""},
	{"POST", "", "", "phone=1", ""},
	{"POST", "", "text/plain", "phone=1", ""},
	{"POST", "", urlencoded + "; charset", "phone=1", ""}, // net/http's error
	{"POST", "", urlencoded + "; a=1; a=2", "phone=1", ""},
	{"POST", "", multi, "phone=1", ""},

	{"POST", "", multi, parts(phonePart), "+1"},
	{"PUT", "a=b", multi, parts(part{`name="a"`, "x"}, phonePart, part{`name="f"; filename="f"`, "phone"}), "+1"},
	{"POST", "", multi, parts(part{`name=phone`, "1"}), "1"},
	{"POST", "", multi, parts(part{`name*=utf-8''ph%6Fne`, "1"}), "1"},
	{"POST", "", multi, parts(part{`name="phone"; filename=""`, "1"}), "1"}, // no file for net/http
	{"POST", "", multi, parts(part{"name=phone\r\nContent-Transfer-Encoding: Quoted-Printable", "=2B1="}), "+1"},
	{"POST", "", multi, parts(part{"name=phone\r\nContent-Transfer-Encoding: base64", "KzE="}), "KzE="},
	{"POST", "", multi, "preamble\r\n" + parts(phonePart) + "--b\r\nepilogue", "+1"},
	{"POST", "", multi, strings.ReplaceAll(parts(phonePart), "\r\n", "\n"), "+1"},
	{"POST", "", multi, strings.TrimSpace(parts(phonePart)), "+1"},
	{"POST", "", multi, parts(part{`name="phone"`, " 1\r\n2 "}), " 1\r\n2 "},
	{"POST", "", multi, parts(phonePart, part{`nom="phone"`, "2"}, part{`name=""`, "3"}), "+1"},
	{"POST", "", multi, parts(phonePart, part{`name="fax"; name="phone"`, "2"}), "+1"}, // skipped
	{"POST", "", multi, "--b\r\nContent-Disposition: attachment; name=phone\r\n\r\n2\r\n" + parts(phonePart), "+1"},

	{"GET", "", multi, parts(phonePart), ""},
	{"POST", "", multi, parts(phonePart, phonePart), ""},
	{"POST", "", multi, parts(phonePart, part{`name="x"`, "2"}, part{`name=phone`, "2"}), ""},
	{"POST", "", multi, parts(phonePart, part{`name="Phone"`, "2"}), ""},
	{"POST", "phone=2", multi, parts(phonePart), ""}, // FormValue gives 2
	{"POST", "Phone=2", multi, parts(phonePart), ""},
	{"POST", "a=%zz", multi, parts(phonePart), ""},
	{"POST", "", multi, parts(part{`name="phone"; filename="x"`, "1"}), ""},
	{"POST", "", multi, parts(phonePart, part{`name="phone"; filename="x"`, "1"}), ""},
	{"POST", "", multi, parts(phonePart, part{`name="PHONE"; filename="x"`, "1"}), ""},
	{"POST", "", multi, parts(part{`name="phone"; filename*=utf-8''x`, "1"}), ""},
	{"POST", "", multi, parts(part{`name="phone"`, ""}), ""},
	{"POST", "", multi, parts(part{`name="phone"`, " \r\n"}), ""},
	{"POST", "", multi, parts(), ""},
	{"POST", "", multi, "--b\r\nContent-Disposition: form-data; name=phone\r\n\r\n1", ""},
	{"POST", "", multi, "--b\r\nContent-Disposition: form-data; name=phone\r\n\r\n1\r\n--b\r\n", "1"}, // net/http lets that pass
	{"POST", "", multi, "--b\r\nContent-Disposition: form-data; name=phone\r\nx\r\n\r\n1\r\n--b--", ""},
	{"POST", "", multi, parts(phonePart, part{"name=x\r\nContent-Transfer-Encoding: quoted-printable", "=x\x00"}), ""},
	{"POST", "", multi, parts(append([]part{phonePart}, make([]part, 1000)...)...), ""}, // net/http's most
	{"POST", "", "multipart/form-data", parts(phonePart), ""},
	{"POST", "", "multipart/form-data; boundary=", parts(phonePart), ""},
	{"POST", "", "multipart/form-data; boundary=c", parts(phonePart), ""},
	{"POST", "", "multipart/form-data; boundary=b; x", parts(phonePart), ""},
	{"POST", "", "multipart/mixed; boundary=b", parts(phonePart), ""},
}

func TestForm(t *testing.T) {
	for _, tt := range formTests {
		r := formRequest(strings.NewReader(tt.body), tt.method, tt.query, tt.contentType)
		k, err := keyfunc.Form("phone")(r)
		if k != tt.want || (tt.want == "") != errors.Is(err, keyfunc.ErrNoKey) || tt.want != "" && err != nil {
			t.Errorf("%s ?%s %s %.200q: got %q, %v; want %q", tt.method, tt.query, tt.contentType, tt.body, k, err, tt.want)
		}
		if r.Form != nil || r.PostForm != nil || r.MultipartForm != nil {
			t.Error("the request has been parsed")
		}
		wantBody(t, r, tt.body, nil)
		checkForm(t, []byte(tt.body), tt.method, tt.query, tt.contentType, k)
	}
}

func formRequest(body io.Reader, method, query, contentType string) *http.Request {
	r := bodyRequest(body)
	r.Method, r.URL.RawQuery = method, query
	r.Header.Set("Content-Type", contentType)
	return r
}

// What was parsed further out is what the handler sees, not the body.
func TestFormParsedOutside(t *testing.T) {
	one, two := url.Values{"phone": {"1"}}, url.Values{"phone": {"2"}}
	for name, tt := range map[string]struct {
		contentType, body string
		parse             func(*http.Request)
		want              string
	}{
		"by hand":            {urlencoded, "phone=3", func(r *http.Request) { r.Form, r.PostForm = one, one }, "1"},
		"Form alone":         {urlencoded, "phone=1", func(r *http.Request) { r.Form = one }, ""},
		"PostForm alone":     {urlencoded, "phone=1", func(r *http.Request) { r.PostForm = one }, ""},
		"at odds":            {urlencoded, "phone=1", func(r *http.Request) { r.Form, r.PostForm = one, two }, ""},
		"twice":              {urlencoded, "", func(r *http.Request) { r.Form = url.Values{"phone": {"1", "1"}}; r.PostForm = r.Form }, ""},
		"blank":              {urlencoded, "phone=1", func(r *http.Request) { r.Form = url.Values{"phone": {" "}}; r.PostForm = r.Form }, ""},
		"folded":             {urlencoded, "phone=1", func(r *http.Request) { r.Form = url.Values{"phone": {"1"}, "Phone": {"1"}}; r.PostForm = one }, ""},
		"emptied":            {urlencoded, "phone=1", func(r *http.Request) { r.Form, r.PostForm = url.Values{}, url.Values{} }, ""},
		"ParseForm":          {urlencoded, "phone=1", func(r *http.Request) { _ = r.ParseForm() }, "1"},
		"FormValue":          {multi, parts(phonePart), func(r *http.Request) { r.FormValue("x") }, "+1"},
		"in part":            {multi, parts(phonePart), func(r *http.Request) { _ = r.ParseForm() }, ""},
		"MultipartReader":    {multi, parts(phonePart), func(r *http.Request) { _, _ = r.MultipartReader() }, ""},
		"malformed":          {multi, "x" + parts(phonePart), func(r *http.Request) { r.FormValue("x") }, ""},
		"a file by the name": {multi, parts(phonePart, part{`name="phone"; filename="x"`, ""}), func(r *http.Request) { r.FormValue("x") }, ""},
	} {
		r := formRequest(strings.NewReader(tt.body), "POST", "", tt.contentType)
		tt.parse(r)
		body := r.Body
		k, err := keyfunc.Form("phone")(r)
		if k != tt.want || (tt.want == "") != errors.Is(err, keyfunc.ErrNoKey) || tt.want != "" && err != nil || r.Body != body {
			t.Errorf("%s: got %q, %v; want %q", name, k, err, tt.want)
		}
		r.URL.RawQuery = "phone=2"
		if k, err := keyfunc.Form("phone")(r); k != "" || !errors.Is(err, keyfunc.ErrNoKey) {
			t.Errorf("%s, also in the query: got %q, %v", name, k, err)
		}
	}
}

func TestFormErrors(t *testing.T) {
	for _, tt := range []struct{ contentType, body string }{{urlencoded, "phone=1"}, {multi, parts(phonePart)}} {
		n := int64(len(tt.body))
		send := func(body io.Reader, max int64) (string, error) {
			return keyfunc.Body{Max: max}.Form("phone")(formRequest(body, "POST", "", tt.contentType))
		}
		if k, err := send(strings.NewReader(tt.body), n); k == "" || err != nil {
			t.Errorf("Max %d: got %q, %v", n, k, err)
		}
		if k, err := send(strings.NewReader(tt.body), n-1); k != "" || err != keyfunc.ErrBodyTooLong {
			t.Errorf("Max %d: got %q, %v", n-1, k, err)
		}
		r, _ := fuzzRequest([]byte(tt.body), 1)
		if k, err := send(r.Body, 0); k != "" || !errors.Is(err, errCut) || !errors.Is(err, keyfunc.ErrNoKey) {
			t.Errorf("cut off: got %q, %v", k, err)
		}
	}
	// Nothing is read where there can be no key.
	for _, tt := range []struct{ method, query, contentType string }{
		{"GET", "", urlencoded}, {"POST", "phone", urlencoded}, {"POST", "", "text/plain"}, {"POST", "", "multipart/form-data"},
	} {
		s := &source{Reader: strings.NewReader("phone=1")}
		r := formRequest(nil, tt.method, tt.query, tt.contentType)
		r.Body = s
		_, err := keyfunc.Form("phone")(r)
		if want := keyfunc.ErrNoKey.Error() + ": form field phone"; s.reads > 0 || err == nil || err.Error() != want {
			t.Errorf("%s ?%s %s: %v after %d reads", tt.method, tt.query, tt.contentType, err, s.reads)
		}
	}
	// A file stays in memory.
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	withFile := parts(part{`name="f"; filename="f"`, "content"}, phonePart)
	if k, err := keyfunc.Form("phone")(formRequest(strings.NewReader(withFile), "POST", "", multi)); k != "+1" || err != nil {
		t.Errorf("got %q, %v", k, err)
	}
	if files, err := os.ReadDir(dir); len(files) > 0 || err != nil {
		t.Errorf("temporary files %v, %v", files, err)
	}
	r := &http.Request{Method: "POST", Body: io.NopCloser(strings.NewReader("phone=1"))}
	if k, err := keyfunc.Form("phone")(r); k != "" || !errors.Is(err, keyfunc.ErrNoKey) {
		t.Errorf("neither URL nor header: got %q, %v", k, err)
	}
	r.Header = http.Header{"Content-Type": {urlencoded}}
	if k, err := keyfunc.Form("phone")(r); k != "1" || err != nil {
		t.Errorf("no URL: got %q, %v", k, err)
	}
}

var formMethods = []string{"POST", "PUT", "PATCH", "GET"}

func FuzzForm(f *testing.F) {
	for i, tt := range formTests {
		if len(tt.body) < 1000 {
			f.Add(uint8(i), tt.query, tt.contentType, []byte(tt.body), uint16(0), uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, m uint8, query, contentType string, body []byte, most uint16, mode uint8) {
		r, end := fuzzRequest(body, mode)
		method := formMethods[int(m)%len(formMethods)]
		r.Method, r.URL.RawQuery = method, query
		r.Header.Set("Content-Type", contentType)
		k, err := keyfunc.Body{Max: int64(most)}.Form("phone")(r)
		limit := int(most)
		if limit == 0 {
			limit = keyfunc.DefaultMaxBody
		}
		switch {
		case (err == nil) != (k != "") || err != nil && !errors.Is(err, keyfunc.ErrNoKey):
			t.Errorf("got %q, %v", k, err)
		case k != "" && (len(body) > limit || end != nil):
			t.Errorf("%d bytes, Max %d, then %v: got %q", len(body), most, end, k)
		case errors.Is(err, keyfunc.ErrBodyTooLong) && len(body) <= limit:
			t.Errorf("%d bytes, Max %d: %v", len(body), most, err)
		case len(body) <= limit && end == nil:
			checkForm(t, body, method, query, contentType, k)
		}
		wantBody(t, r, string(body), end)
	})
}
