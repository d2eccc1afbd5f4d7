package keyfunc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/weirgo/weir/algorithms"
)

// JSON is [Body.JSON] of the zero [Body].
func JSON(path ...string) Func { return Body{}.JSON(path...) }

// JSON gives the field of a JSON body at the path, each element of which names a
// member of an object: "user", "phone" is {"user":{"phone":"+12025550142"}}.
// The names must be those that the handler reads, and the field what it acts
// on. See [Body] for what such a key is good for.
//
// The key is the text of a string, or an integer as it is written. The string
// "42" and the number 42 are one key. (A handler that reads numbers as float64
// takes those beyond 2^53 for one another; read them as integers.)
//
// The error wraps [ErrNoKey] where the body is not one JSON text in UTF-8, and
// where the field is absent, blank, or something else: null, true, an object,
// an array, or a number with a fraction or an exponent, or -0, which would be
// more spellings of one. It does so too where another reader of the body may
// see another field: if an object on the path has the member twice, or has one
// whose name differs in upper and lower case only, which encoding/json takes
// for the same.
//
// The Content-Type is not looked at, as most handlers don't. One that also takes
// the field from elsewhere, such as a form, needs a Func that finds it there
// under the same conditions.
//
// An empty path, or an empty element, is a mistake ([Validate]).
func (b Body) JSON(path ...string) Func {
	errs := []error{b.check()}
	if len(path) == 0 {
		errs = append(errs, &algorithms.FieldError{Field: "keyfunc.JSON: path", Value: path, Reason: "must have at least one element"})
	}
	var names []fieldName
	for i, name := range path {
		if name == "" {
			errs = append(errs, &algorithms.FieldError{
				Field: fmt.Sprintf("keyfunc.JSON: path[%d]", i), Value: name, Reason: "must not be empty",
			})
		}
		names = append(names, newFieldName(name))
	}
	if err := errors.Join(errs...); err != nil {
		return mistake(err)
	}
	missing := noKey("JSON field " + strings.Join(path, "."))
	return func(r *http.Request) (string, error) {
		text, err := b.read(r)
		if err != nil {
			return "", err
		}
		// What follows relies on the text being valid. Valid allocates for an error.
		if len(text) == 0 || !utf8.Valid(text) || !json.Valid(text) {
			return "", missing
		}
		value := text[skipJSON(text, 0):]
		for _, name := range names {
			if value = jsonMember(value, name); value == nil {
				return "", missing
			}
		}
		if key := jsonKey(value); key != "" {
			return key, nil
		}
		return "", missing
	}
}

// fieldName is the name of a field, which others may not find by that alone.
type fieldName struct {
	exact string
	lower []byte
}

func newFieldName(name string) fieldName {
	return fieldName{name, bytes.ToLower([]byte(name))}
}

// like tells whether some reader may take name for n. encoding/json, gorilla's
// schema and others fold case as EqualFold does; decoders that gin can be built
// with compare in lower case, where "İ" is an "i", which it isn't for EqualFold.
func (n fieldName) like(name []byte) bool {
	if utf8.RuneCount(name) < len(name) { // for ASCII, EqualFold is enough
		name = bytes.ToLower(name)
	}
	return bytes.EqualFold(name, n.lower)
}

// jsonMember gives the value of the one member with that name, or nil if that
// can't be said.
func jsonMember(object []byte, name fieldName) []byte {
	if object[0] != '{' {
		return nil
	}
	var found []byte
	for i := skipJSON(object, 1); object[i] != '}'; {
		end := endOfString(object, i)
		quoted := object[i:end]
		i = skipJSON(object, end)
		end = endOfJSON(object, i)
		if n := unquote(quoted); name.like(n) {
			if found != nil || string(n) != name.exact {
				return nil
			}
			found = object[i:end]
		}
		i = skipJSON(object, end)
	}
	return found
}

// jsonKey gives the text of a string or an integer, and nothing for the rest.
func jsonKey(value []byte) string {
	if value[0] == '"' {
		if s := unquote(value); len(bytes.TrimSpace(s)) > 0 {
			return string(s)
		}
		return ""
	}
	for i, c := range value {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return ""
		}
	}
	if string(value) == "-0" {
		return ""
	}
	return string(value)
}

// skipJSON gives where the next name or value begins, or an object ends.
func skipJSON(b []byte, i int) int {
	for i < len(b) && strings.IndexByte(" \t\r\n,:", b[i]) >= 0 {
		i++
	}
	return i
}

// endOfJSON gives the end of the value, inside an object, that begins at i.
func endOfJSON(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = endOfString(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 && strings.IndexByte(" \t\r\n,]}", b[i]) >= 0 {
			return i
		}
	}
}

// endOfString gives the end of the string that begins at i.
func endOfString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// unquote gives the text of a string.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return []byte(s)
}
