package normalize_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/keyfunc/normalize"
)

// However a caller spells the address, the attempts on its account are counted
// together.
func ExampleFold() {
	email := keyfunc.Map(keyfunc.Header("X-Email"), normalize.Fold)

	for _, spelling := range []string{
		"josé@example.org",
		"\tJosé@Example.ORG ",
		"jose\u0301@example.org", // e and a combining accent
		"jo\u200bsé@example.org", // with a zero width space
	} {
		r := httptest.NewRequest("POST", "/login", nil)
		r.Header.Set("X-Email", spelling)
		key, err := email(r)
		fmt.Printf("%+q %v\n", key, err)
	}
	// Output:
	// "jose\u0301@example.org" <nil>
	// "jose\u0301@example.org" <nil>
	// "jose\u0301@example.org" <nil>
	// "jose\u0301@example.org" <nil>
}
