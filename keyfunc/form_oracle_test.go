package keyfunc_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

// formReads are the ways in which handlers read the field: each gives the key or
// nothing, if at all there is a key.
var formReads = map[string]func(*http.Request) []string{
	"FormValue":     func(r *http.Request) []string { return []string{r.FormValue("phone")} },
	"PostFormValue": func(r *http.Request) []string { return []string{r.PostFormValue("phone")} },
	"both": func(r *http.Request) []string {
		return []string{r.PostFormValue("phone"), r.FormValue("phone")}
	},
	"ParseForm": func(r *http.Request) []string {
		_ = r.ParseForm()
		return append(r.Form["phone"], r.PostForm["phone"]...)
	},
	"ParseForm, PostFormValue": func(r *http.Request) []string {
		_ = r.ParseForm()
		return []string{r.PostFormValue("phone"), r.FormValue("phone")}
	},
	"ParseMultipartForm": func(r *http.Request) []string { // gin's PostForm, and Bind
		_ = r.ParseMultipartForm(1 << 20)
		return append(r.Form["phone"], r.PostForm["phone"]...)
	},
	"MultipartReader": func(r *http.Request) (values []string) {
		m, err := r.MultipartReader()
		if err != nil {
			return nil
		}
		for {
			p, err := m.NextPart()
			if err != nil {
				return values
			}
			if p.FormName() == "phone" {
				b, _ := io.ReadAll(p)
				values = append(values, string(b))
			}
		}
	},
}

// checkForm holds a key against what handlers make of the request.
func checkForm(t *testing.T, body []byte, method, query, contentType, key string) {
	t.Helper()
	if want := slowForm(body, method, query, contentType); key != want {
		t.Errorf("%s ?%q %q %.200q: got %q, want %q", method, query, contentType, body, key, want)
	}
	if key == "" {
		return
	}
	for name, read := range formReads {
		r := formRequest(bytes.NewReader(body), method, query, contentType)
		if again, err := keyfunc.Form("phone")(r); again != key || err != nil {
			t.Errorf("once %q, then %q, %v", key, again, err)
		}
		for _, v := range read(r) {
			if v != key && (v != "" || name == "FormValue" || name == "PostFormValue") {
				t.Errorf("%s ?%q %q %.200q: key %q, but %s gives %q", method, query, contentType, body, key, name, v)
			}
		}
	}
	r := formRequest(bytes.NewReader(body), method, query, contentType)
	_, _ = keyfunc.Form("phone")(r)
	err := r.ParseMultipartForm(1 << 20)
	if err != nil && !errors.Is(err, http.ErrNotMultipart) || len(r.Form["phone"]) != 1 || len(r.PostForm["phone"]) != 1 || r.Form.Get("phone") != key {
		t.Errorf("%s ?%q %q %.200q: key %q, but the form is %q, %v", method, query, contentType, body, key, r.Form, err)
	}
	// What was parsed further out gives the same key.
	if again, err := keyfunc.Form("phone")(r); again != key || err != nil {
		t.Errorf("%s ?%q %q %.200q: once parsed: got %q, %v; want %q", method, query, contentType, body, again, err, key)
	}
}

// slowForm is Form by what net/http says of the request.
func slowForm(body []byte, method, query, contentType string) string {
	r := formRequest(bytes.NewReader(body), method, query, contentType)
	if method == "GET" || r.ParseForm() != nil {
		return ""
	}
	if err := r.ParseMultipartForm(1 << 20); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return ""
	}
	found := 0
	for name, v := range r.Form {
		if strings.EqualFold(strings.ToLower(name), "phone") {
			found += len(v)
		}
	}
	if r.MultipartForm != nil {
		for name := range r.MultipartForm.File {
			if strings.EqualFold(strings.ToLower(name), "phone") {
				found++
			}
		}
	}
	if v := r.PostForm["phone"]; found == 1 && len(v) == 1 && strings.TrimSpace(v[0]) != "" {
		return v[0]
	}
	return ""
}
