package keyfunc

import (
	"bytes"
	"errors"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/weirgo/weir/algorithms"
)

// Form is [Body.Form] of the zero [Body].
func Form(name string) Func { return Body{}.Form(name) }

// Form gives the named field of a form in the body of a POST, PUT or PATCH:
// application/x-www-form-urlencoded or multipart/form-data. The name must be
// that which the handler reads, and the field what it acts on. See [Body] for
// what such a key is good for.
//
// The key is what FormValue and PostFormValue of [http.Request] give. Where the
// form has been parsed by something further out, the key is from there.
//
// The error wraps [ErrNoKey] where the body is no such form or is malformed, as
// ParseMultipartForm would say of it or of the query, and where the field is
// absent, blank, or a file. It does so too where the handler may see another
// value: if the field is there twice, in the query also, or if there is one
// whose name differs in upper and lower case only.
//
// An empty name is a mistake ([Validate]).
func (b Body) Form(name string) Func {
	errs := []error{b.check()}
	if name == "" {
		errs = append(errs, &algorithms.FieldError{Field: "keyfunc.Form: name", Value: name, Reason: "must not be empty"})
	}
	if err := errors.Join(errs...); err != nil {
		return mistake(err)
	}
	field := newFieldName(name)
	missing := noKey("form field " + name)
	return func(r *http.Request) (string, error) {
		if !takesForm(r.Method) || inQuery(r.URL, field) {
			return "", missing
		}
		f, err := b.form(r, name)
		if err != nil {
			return "", err
		}
		v := f.Value[name]
		if len(v) == 0 || count(f.Value, field) > 1 || count(f.File, field) > 0 || strings.TrimSpace(v[0]) == "" {
			return "", missing
		}
		return v[0], nil
	}
}

// takesForm tells whether net/http parses a body of the method into PostForm.
func takesForm(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// inQuery tells whether the handler may take the field from the query, which
// FormValue prefers to a multipart body, or could have, were it well-formed.
func inQuery(u *url.URL, field fieldName) bool {
	if u == nil || u.RawQuery == "" {
		return false
	}
	values, err := url.ParseQuery(u.RawQuery)
	return err != nil || count(values, field) > 0
}

// count gives the number of values that may be taken for the field's.
func count[V any](values map[string][]V, field fieldName) int {
	n := 0
	for name, v := range values {
		if field.like([]byte(name)) {
			n += len(v)
		}
	}
	return n
}

// form gives the form that the handler will see, and an empty one if it will see
// none or an error. The error is that of reading the body.
func (b Body) form(r *http.Request, name string) (multipart.Form, error) {
	if r.Form != nil || r.PostForm != nil || r.MultipartForm != nil {
		return parsedForm(r, name), nil
	}
	// As net/http does it: the type is looked at first and the body only then.
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return multipart.Form{}, nil
	}
	switch mediaType {
	case "application/x-www-form-urlencoded":
		body, err := b.read(r)
		if err != nil {
			return multipart.Form{}, err
		}
		if values, err := url.ParseQuery(string(body)); err == nil {
			return multipart.Form{Value: values}, nil
		}
	case "multipart/form-data":
		boundary, ok := params["boundary"]
		if !ok {
			break
		}
		body, err := b.read(r)
		if err != nil {
			return multipart.Form{}, err
		}
		// Its files fit into as much memory as the body; none goes to the disk.
		f, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(int64(len(body)))
		if err == nil {
			return *f, nil
		}
	}
	return multipart.Form{}, nil
}

// parsedForm is the form that r has been parsed into, which is what the handler
// sees, whatever the body holds. If it was parsed in part only, or by hand, so
// that FormValue and PostFormValue would not give the same, there is none.
func parsedForm(r *http.Request, name string) multipart.Form {
	if !slices.Equal(r.Form[name], r.PostForm[name]) {
		return multipart.Form{}
	}
	f := multipart.Form{Value: r.Form}
	if r.MultipartForm != nil {
		f.File = r.MultipartForm.File
	}
	return f
}
