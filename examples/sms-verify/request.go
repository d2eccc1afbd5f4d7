package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/weirgo/weir/keyfunc"
)

// maxBody is the most that is read of a request's body.
const maxBody = 1 << 10

// input is what a request asks for. It is decoded once, before the limits are
// asked, so that they and the handler cannot see different numbers.
type input struct {
	phone string // in E.164
	code  string // as it was sent; empty where the route takes none
}

// inputError says what is wrong with a request, to its client. To the
// middleware it is a missing key.
type inputError struct {
	status int
	detail string
}

func (e *inputError) Error() string { return "bad input: " + e.detail }

// Unwrap makes the middleware charge the address: bad input is not free.
func (e *inputError) Unwrap() error { return keyfunc.ErrNoKey }

// decoded is the context's value of decode.
type decoded struct {
	in  input
	err error
}

type decodedKey struct{}

// inputOf is what decode made of the request.
func inputOf(r *http.Request) (input, error) {
	d, ok := r.Context().Value(decodedKey{}).(decoded)
	if !ok {
		return input{}, errors.New("the request was not decoded")
	}
	return d.in, d.err
}

// decode reads a JSON object with the given fields and calls next, also where
// that fails: the limits come next, and they count bad input as well.
func decode(region string, next http.Handler, fields ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var d decoded
		d.in, d.err = readInput(w, r, region, fields)
		ctx := r.Context()
		if d.err != nil {
			// A body that comes too slowly, or is cut off, ends the context. It is
			// counted all the same.
			ctx = context.WithoutCancel(ctx)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, decodedKey{}, d)))
	})
}

// readInput reads the body, as JSON whatever its type is said to be: what a page
// of another site may not do is kept out by where a request comes from, not by
// its type. Its error is an *inputError.
func readInput(w http.ResponseWriter, r *http.Request, region string, fields []string) (input, error) {
	values, err := decodeStrings(http.MaxBytesReader(w, r.Body, maxBody), fields)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return input{}, &inputError{http.StatusRequestEntityTooLarge, fmt.Sprintf("The body must be at most %d bytes.", maxBody)}
	}
	if err != nil {
		return input{}, &inputError{http.StatusBadRequest, "The body must be one JSON object with nothing but " + strings.Join(fields, " and ") + ", as strings."}
	}
	phone, err := normalizePhone(values["phone"], region)
	if err != nil {
		return input{}, &inputError{http.StatusBadRequest, `"phone" must be a number that can get text messages, such as "+12025550142".`}
	}
	return input{phone: phone, code: values["code"]}, nil
}

var errNotStrings = errors.New("not one object of strings")

// decodeStrings reads one JSON object that has each of the fields once, as a
// string, and nothing else. [json.Unmarshal] would let the last of two fields
// win, and take "PHONE" for "phone": others that read the same body, such as a
// proxy that filters, may not agree.
func decodeStrings(r io.Reader, fields []string) (map[string]string, error) {
	dec := json.NewDecoder(r)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errNotStrings, err)
	}
	values := make(map[string]string, len(fields))
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		value, err := dec.Token()
		if err != nil {
			return nil, err
		}
		field, _ := name.(string)
		text, isText := value.(string)
		_, twice := values[field]
		if !slices.Contains(fields, field) || !isText || twice {
			return nil, errNotStrings
		}
		values[field] = text
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.Join(errNotStrings, err)
	}
	if len(values) != len(fields) {
		return nil, errNotStrings
	}
	return values, nil
}
