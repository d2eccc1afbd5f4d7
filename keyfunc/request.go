package keyfunc

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// Header gives the value of the named request header as it stands: upper and
// lower case differ. Of several lines it is the first, which is the one that
// Header.Get gives the handler. "Host" is the request's Host, which net/http
// keeps apart from the headers; [Host] has it in one spelling.
//
// The error wraps [ErrNoKey] where the header is absent or blank. An empty name
// is a mistake ([Validate]).
//
// Anyone can write a header. Use it only behind something that authenticates
// the header or strips it from what came from outside; else a caller gets a new
// budget with each value, or spends somebody else's.
func Header(name string) Func {
	if name == "" {
		return wrong("Header: name", name, "must not be empty")
	}
	canonical := http.CanonicalHeaderKey(name) // here, or Get does it for each request
	return part("header "+name, func(r *http.Request) string {
		if canonical == "Host" {
			return r.Host
		}
		return r.Header.Get(canonical)
	})
}

// Cookie gives the value of the named cookie; of several it is the first, which
// is the one that [http.Request.Cookie] gives the handler.
//
// The error wraps [ErrNoKey] where there is no such cookie or it is blank. An
// empty name is a mistake ([Validate]).
//
// A caller can send any cookie, or none. A session's id is a key only where
// something before the limit has found it to be valid, which [Context] says
// better.
func Cookie(name string) Func {
	if name == "" {
		return wrong("Cookie: name", name, "must not be empty")
	}
	return part("cookie "+name, func(r *http.Request) string {
		c, err := r.Cookie(name)
		if err != nil {
			return ""
		}
		return c.Value
	})
}

// Query gives the decoded value of the named parameter in the URL's query. Order
// and encoding of parameters make no difference, nor do others.
//
// The error wraps [ErrNoKey] where the parameter is absent, blank or given
// twice: the handler could read the other copy. An empty name is a mistake
// ([Validate]).
//
// A handler that reads FormValue prefers a field of the body; let it read
// URL.Query.
func Query(name string) Func {
	if name == "" {
		return wrong("Query: name", name, "must not be empty")
	}
	return part("query parameter "+name, func(r *http.Request) string {
		if r.URL.RawQuery == "" {
			return ""
		}
		values := r.URL.Query()[name]
		if len(values) != 1 {
			return ""
		}
		return values[0]
	})
}

// PathValue gives the part of the path that the route's pattern calls name, as
// [http.Request.PathValue] has it: decoded, upper and lower case kept. It
// serves http.ServeMux, and chi and gin whose adapters set the path values.
//
// The error wraps [ErrNoKey] where the value is empty: the pattern has no such
// name, or the request has not been routed yet (see [Route]). An empty name is a
// mistake ([Validate]).
func PathValue(name string) Func {
	if name == "" {
		return wrong("PathValue: name", name, "must not be empty")
	}
	missing := noKey("path value " + name)
	return func(r *http.Request) (string, error) {
		if v := r.PathValue(name); v != "" {
			return v, nil
		}
		return "", missing
	}
}

// part is the Func of a text in the request, which is missing where it is blank.
func part(what string, find func(*http.Request) string) Func {
	missing := noKey(what)
	return func(r *http.Request) (string, error) {
		v := find(r)
		if strings.TrimSpace(v) == "" {
			return "", missing
		}
		return v, nil
	}
}

var (
	errNoUser = noKey("user of HTTP basic authentication")
	errNoHost = noKey("host")
)

// BasicUser is a [Func]: it gives the user name of HTTP basic authentication (RFC
// 7617). The password has not been checked, so this limits guesses at one
// account's password, whoever makes them, and nothing else: a caller can write
// any name. The error wraps [ErrNoKey] where there is no name or it is blank.
func BasicUser(r *http.Request) (string, error) {
	user, _, ok := r.BasicAuth()
	if !ok || strings.TrimSpace(user) == "" {
		return "", errNoUser
	}
	return user, nil
}

// Method is a [Func]: it gives the request's method. HEAD is GET, whose handler
// serves it, and "other" stands for all that RFC 9110 and RFC 5789 don't define,
// as a caller can invent any number. Its error is always nil.
//
// What changes the method, such as X-HTTP-Method-Override, must come before the
// limit.
func Method(r *http.Request) (string, error) {
	switch r.Method {
	case "", http.MethodHead:
		return http.MethodGet, nil
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return r.Method, nil
	}
	return "other", nil
}

// Host is a [Func]: it gives the host that the request is for, in lower case and
// without port and final dot. The error wraps [ErrNoKey] where there is none.
//
// A caller can write any host that the server, or what is before it, lets pass.
func Host(r *http.Request) (string, error) {
	h := r.Host
	// More colons than one are IPv6, which has brackets if a port follows.
	if i := strings.LastIndexByte(h, ':'); i >= 0 && (i == strings.IndexByte(h, ':') || h[i-1] == ']') {
		h = h[:i]
	}
	h = strings.ToLower(strings.TrimSuffix(h, "."))
	if strings.TrimSpace(h) == "" {
		return "", errNoHost
	}
	return h, nil
}

// Context gives the value that an earlier layer has put into the request's
// context under key, such as the account it has authenticated: a string, an
// integer, or a type made from one of these, or else what has a String method.
//
// The error wraps [ErrNoKey] where there is no value, or an empty one; a value of
// another type is a failure, which isn't the caller's. A nil key is a mistake
// ([Validate]).
func Context(key any) Func {
	if key == nil {
		return wrong("Context: key", nil, "must not be nil")
	}
	missing := noKey(fmt.Sprintf("context value %T", key))
	return func(r *http.Request) (string, error) {
		k, err := text(r.Context().Value(key))
		if err == nil && k == "" {
			err = missing
		}
		return k, err
	}
}

func text(value any) (string, error) {
	if s, ok := value.(string); ok { // most are
		return s, nil
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return "", nil
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		if v.IsNil() {
			return "", nil
		}
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	// Only now: a String method may be for logs, and hide or cut what it shows.
	if s, ok := value.(fmt.Stringer); ok {
		return s.String(), nil
	}
	return "", fmt.Errorf("weir: keyfunc.Context: a value of type %T is no key: store a string, an integer or a fmt.Stringer", value)
}
