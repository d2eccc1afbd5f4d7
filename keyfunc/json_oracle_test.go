package keyfunc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkJSON holds a key against a slow reading of the body, and against what a
// handler makes of it.
func checkJSON(t *testing.T, body []byte, path []string, key string) {
	t.Helper()
	if want := slowJSON(body, path); key != want {
		t.Errorf("%q of %.200q: got %q, want %q", path, body, key, want)
	}
	if key == "" {
		return
	}
	var flat struct {
		Phone any `json:"phone"`
	}
	var nested struct {
		User struct {
			Phone any `json:"phone"`
		} `json:"user"`
	}
	var to any
	phone := &flat.Phone
	switch strings.Join(path, ".") {
	case "phone":
		to = &flat
	case "user.phone":
		to, phone = &nested, &nested.User.Phone
	default:
		return
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil || fmt.Sprint(*phone) != key {
		t.Errorf("%q of %.200q: key %q, but the handler decodes %v, %v", path, body, key, *phone, err)
	}
}

type jsonField struct {
	name  string
	value any
}

// slowJSON is JSON by the tokens of a decoder.
func slowJSON(body []byte, path []string) string {
	if !utf8.Valid(body) || !json.Valid(body) {
		return ""
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	value := decodeJSON(dec)
	for _, name := range path {
		fields, _ := value.([]jsonField)
		found := 0
		for _, f := range fields {
			if strings.EqualFold(strings.ToLower(f.name), strings.ToLower(name)) {
				found++
				if value = f.value; f.name != name {
					found++
				}
			}
		}
		if found != 1 {
			return ""
		}
	}
	switch v := value.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return v
		}
	case json.Number:
		if canonicalInteger.MatchString(v.String()) {
			return v.String()
		}
	}
	return ""
}

var canonicalInteger = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// decodeJSON gives the next value: for an object, all its fields in order.
func decodeJSON(dec *json.Decoder) any {
	token, _ := dec.Token()
	switch token {
	case json.Delim('{'):
		fields := []jsonField{}
		for dec.More() {
			name, _ := dec.Token()
			fields = append(fields, jsonField{name.(string), decodeJSON(dec)})
		}
		_, _ = dec.Token()
		return fields
	case json.Delim('['):
		for dec.More() {
			decodeJSON(dec)
		}
		_, _ = dec.Token()
		return nil
	}
	return token
}
