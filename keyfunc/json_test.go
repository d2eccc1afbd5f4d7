package keyfunc_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirgo/weir/keyfunc"
)

var userPhone = []string{"user", "phone"}

// jsonTests are bodies and the keys of "phone"; without a key it is ErrNoKey.
var jsonTests = []struct{ name, body, want string }{
	{"string", `{"phone":"+12025550142"}`, "+12025550142"},
	{"spaces around", " \t\r\n{ \"phone\" :\n\"+1\"\t} \n", "+1"},
	{"among others", `{"a":[1,{"phone":"x"},"]}\"{"],"phone":"+1","b":{"phone":"y","c":[]},"d":null,"e":-1.5e3,"f":true}`, "+1"},
	{"as it stands", `{"phone":" Ab|\\ "}`, ` Ab|\ `},
	{"ends in a backslash", `{"a":"\\","b":"\\\"","phone":"+1\\"}`, `+1\`},
	{"escaped value", `{"phone":"\u002b1\n\ud83d\ude00\"\\\/"}`, "+1\n😀\"\\/"},
	{"escaped name", `{"ph\u006fne":"+1"}`, "+1"},
	{"half a surrogate", `{"phone":"\ud83d"}`, "\ufffd"},
	{"not ASCII", `{"phone":"é世"}`, "é世"},
	{"integer", `{"phone":42}`, "42"},
	{"as a string", `{"phone":"42"}`, "42"},
	{"integer before a space", "{\"phone\":42\n}", "42"},
	{"integer before a comma", `{"phone":42,"a":1}`, "42"},
	{"negative", `{"phone":-42}`, "-42"},
	{"zero", `{"phone":0}`, "0"},
	{"beyond int64", `{"phone":123456789012345678901234567890}`, "123456789012345678901234567890"},
	{"other names", `{"phones":1,"phon":2,"":3,"phonee":4,"phone ":5,"ph\\u006fne":6,"phone":"+1"}`, "+1"},

	{"minus zero", `{"phone":-0}`, ""},
	{"fraction", `{"phone":42.0}`, ""},
	{"exponent", `{"phone":42e0}`, ""},
	{"capital exponent", `{"phone":4E1}`, ""},
	{"null", `{"phone":null}`, ""},
	{"true", `{"phone":true}`, ""},
	{"array", `{"phone":["+1"]}`, ""},
	{"object", `{"phone":{"phone":"+1"}}`, ""},
	{"empty", `{"phone":""}`, ""},
	{"blank", `{"phone":" \t\u00a0\u2003"}`, ""},
	{"absent", `{"fax":"+1"}`, ""},
	{"no members", `{}`, ""},
	{"in an array", `[{"phone":"+1"}]`, ""},
	{"in an object", `{"a":{"phone":"+1"}}`, ""},
	{"a string", `"phone"`, ""},
	{"a number", `42`, ""},
	{"null itself", `null`, ""},

	{"twice", `{"phone":"+1","phone":"+2"}`, ""},
	{"twice the same", `{"phone":"+1","phone":"+1"}`, ""},
	{"twice by an escape", `{"phone":"+1","\u0070hone":"+2"}`, ""},
	{"twice, one null", `{"phone":"+1","phone":null}`, ""},
	{"twice, null before", `{"phone":null,"phone":"+1"}`, ""},
	{"folded after", `{"phone":"+1","Phone":"+2"}`, ""},
	{"folded before", `{"PHONE":"+2","phone":"+1"}`, ""},
	{"folded by an escape", `{"phone":"+1","\u0050hone":"+2"}`, ""},
	{"folded alone", `{"Phone":"+1"}`, ""},

	{"trailing comma", `{"phone":"+1",}`, ""},
	{"trailing text", `{"phone":"+1"}x`, ""},
	{"two texts", `{"phone":"+1"}{"phone":"+2"}`, ""},
	{"truncated", `{"phone":"+1"`, ""},
	{"truncated string", `{"phone":"+1`, ""},
	{"comment", `{"phone":"+1"/**/}`, ""},
	{"single quotes", `{'phone':'+1'}`, ""},
	{"control character", "{\"phone\":\"+\x001\"}", ""},
	{"plus sign", `{"phone":+1}`, ""},
	{"leading zero", `{"phone":01}`, ""},
	{"not UTF-8", "{\"phone\":\"+1\xff\"}", ""},
	{"not UTF-8 elsewhere", "{\"phone\":\"+1\",\"a\":\"\xc0\xaf\"}", ""},
	{"byte order mark", "\ufeff" + `{"phone":"+1"}`, ""},
	{"UTF-16", "\x00{\x00\"", ""},
	{"only spaces", " \n", ""},
	{"form", `phone=%2B1`, ""},
	{"deep", `{"phone":"+1","a":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`, "+1"},
	{"too deep", `{"phone":"+1","a":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `}`, ""},
}

func TestJSON(t *testing.T) {
	for _, tt := range jsonTests {
		for _, c := range []struct {
			path []string
			body string
		}{
			{[]string{"phone"}, tt.body},
			{userPhone, `{"a":{"phone":0},"user":` + tt.body + `,"phone":1}`},
			{userPhone, `{"phone":[],"user":` + tt.body + `}`},
		} {
			k, err := keyfunc.JSON(c.path...)(bodyRequest(strings.NewReader(c.body)))
			want := tt.want
			if tt.name == "deep" && len(c.path) > 1 {
				want = ""
			}
			if k != want || (want == "") != errors.Is(err, keyfunc.ErrNoKey) || want != "" && err != nil {
				t.Errorf("%s, %q: got %q, %v; want %q", tt.name, c.path, k, err, want)
			}
			checkJSON(t, []byte(c.body), c.path, k)
		}
	}
}

func TestJSONPath(t *testing.T) {
	for _, tt := range []struct {
		path, body, want string
	}{
		{"user.phone", `{"user":{"phone":"+1"}}`, "+1"},
		{"user.phone", `{"user":{"phone":"+1"},"User":{}}`, ""},
		{"user.phone", `{"user":{"phone":"+1"},"user":{}}`, ""}, // encoding/json merges them
		{"user.phone", `{"user":{"phone":"+1"},"user":{"phone":"+2"}}`, ""},
		{"user.phone", `{"user":{"phone":"+1"},"user":null}`, ""},
		{"user.phone", `{"user":[{"phone":"+1"}]}`, ""},
		{"user.phone", `{"user":"+1"}`, ""},
		{"user.phone", `{"user":null}`, ""},
		{"user.phone", `{"user":1}`, ""},
		{"user.phone", `{"user.phone":"+1"}`, ""},
		{"user.phone", `{"user":{"user":{"phone":"+1"}}}`, ""},
		{"user.phone", `{"user":{"phone":"+1"},"other":{"phone":"+2","phone":"+3"},"phone":4}`, "+1"},
		{"a.b.c.d", `{"a":{"b":{"c":{"d":"+1"}}}}`, "+1"},
		{"a.b.c.d", `{"a":{"b":{"c":{"d":"+1"},"C":0}}}`, ""},
		{"a.a.a", `{"a":{"a":{"a":"+1"}}}`, "+1"},
		{"disk", `{"disk":"+1","dis\u212a":"+2"}`, ""}, // the sign for Kelvin folds to k
		{"disk", `{"disk":"+1","diſk":"+2"}`, ""},      // as does the long s to s
		{"id", `{"id":"+1","İd":"+2"}`, ""},            // not folded, but i in lower case
		{"İd", `{"id":"+1","İd":"+2"}`, ""},
		{"İd", `{"İd":"+1"}`, "+1"},
		{"id", `{"id":"+1","ıd":"+2"}`, "+1"}, // neither
		{"straße", `{"straße":"+1","strasse":"+2"}`, "+1"},
		{"straße", `{"straße":"+1","STRAẞE":"+2"}`, ""},
		{"a|b\"", `{"a|b\"":"+1"}`, "+1"},
	} {
		path := strings.Split(tt.path, ".")
		k, err := keyfunc.JSON(path...)(bodyRequest(strings.NewReader(tt.body)))
		if k != tt.want || (tt.want == "") != errors.Is(err, keyfunc.ErrNoKey) {
			t.Errorf("%s of %s: got %q, %v; want %q", tt.path, tt.body, k, err, tt.want)
		}
		checkJSON(t, []byte(tt.body), path, k)
	}
}

// The path is the caller's slice no longer.
func TestJSONKeepsItsPath(t *testing.T) {
	path := []string{"phone"}
	f := keyfunc.JSON(path...)
	path[0] = "fax"
	r := bodyRequest(strings.NewReader(`{"phone":"+1","fax":"+2"}`))
	if k, err := f(r); k != "+1" || err != nil {
		t.Errorf("got %q, %v", k, err)
	}
	_, err := keyfunc.JSON(userPhone...)(r)
	if want := keyfunc.ErrNoKey.Error() + ": JSON field user.phone"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzJSON(f *testing.F) {
	for i, tt := range jsonTests {
		if tt.name != "too deep" && tt.name != "deep" {
			f.Add([]byte(tt.body), uint16(0), uint8(i))
			f.Add([]byte(`{"user":`+tt.body+`}`), uint16(i), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, most uint16, mode uint8) {
		r, end := fuzzRequest(body, mode)
		for _, path := range [][]string{{"phone"}, userPhone, {"phone"}} {
			k, err := keyfunc.Body{Max: int64(most)}.JSON(path...)(r)
			limit := int(most)
			if limit == 0 {
				limit = keyfunc.DefaultMaxBody
			}
			switch {
			case (err == nil) != (k != "") || err != nil && !errors.Is(err, keyfunc.ErrNoKey):
				t.Errorf("%q: got %q, %v", path, k, err)
			case errors.Is(err, keyfunc.ErrBodyTooLong) != (len(body) > limit):
				t.Errorf("%d bytes, Max %d: %v", len(body), most, err)
			case len(body) <= limit && end != nil && !errors.Is(err, end):
				t.Errorf("%v, want %v", err, end)
			case len(body) <= limit && end == nil:
				checkJSON(t, body, path, k)
			}
		}
		wantBody(t, r, string(body), end)
	})
}

// A code is sent to a phone at most so often, whoever asks. The handler decodes
// the same field afterwards.
func ExampleJSON() {
	byPhone := keyfunc.JSON("user", "phone")
	for _, body := range []string{
		`{"user":{"phone":"+12025550142"}}`,
		`{"user":{"phone":"+12025550142","Phone":"+12025550143"}}`, // which one?
	} {
		r := httptest.NewRequest(http.MethodPost, "/codes", strings.NewReader(body))
		key, err := byPhone(r)
		rest, _ := io.ReadAll(r.Body)
		fmt.Println(key, err, string(rest) == body)
	}
	// Output:
	// +12025550142 <nil> true
	//  weir: the request has no key: JSON field user.phone true
}
