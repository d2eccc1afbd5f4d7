package keyfunc

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/weirgo/weir/algorithms"
)

// DefaultMaxBody is how much of a body is read where [Body] doesn't say.
const DefaultMaxBody = 64 << 10

// ErrBodyTooLong says that a body is longer than [Body].Max, or than an outer
// [http.MaxBytesReader] allows. It wraps [ErrNoKey].
var ErrBodyTooLong = noKey("the body is too long")

// Body finds keys in the bodies of requests. [JSON] and [Form] are those of the
// zero Body.
//
// A body is what the client writes. A key from it is good for what is asked for,
// such as a phone number that messages go to, and never for who asks, as each
// new value is a new budget: have a rule by address beside it. The key is the
// field's text as it stands. Where the handler takes several spellings for one
// thing, as with the blanks in a phone number, make them one by [Map].
//
// The body is read before anything is decided: a client that waits for "100
// Continue" is told to go on, and a slow one is waited for, so the server needs a
// ReadTimeout. The handler gets the whole body from r.Body, which is replaced,
// byte for byte and with the error that it ended in, if any, also where there was
// no key. Several Funcs that look into one body read it once. An outer layer that
// has read some of it must put that back.
//
// The error wraps [ErrNoKey] in all cases. It is [ErrBodyTooLong] for a long
// body. Where reading failed it also wraps the cause, whose text it leaves out,
// as that can hold an address. A compressed body, by its Content-Encoding, has no
// key: decompress it further out and take the header off.
type Body struct {
	// Max is the most bytes of a body that are read and kept. A longer one has no
	// key, and isn't read at all if its Content-Length says so. To find a key
	// takes a few times the body's length besides, for a moment. Zero is
	// DefaultMaxBody; negative is a mistake ([Validate]).
	Max int64
}

// check gives the mistake in b.
func (b Body) check() error {
	if b.Max < 0 {
		return &algorithms.FieldError{Field: "keyfunc.Body.Max", Value: b.Max, Reason: "must not be negative"}
	}
	return nil
}

func (b Body) limit() int {
	if b.Max == 0 {
		return DefaultMaxBody
	}
	return int(min(b.Max, math.MaxInt-1)) // one byte more is read
}

// read gives the whole body, which is not to be changed, and sees to it that
// r.Body still has it. Without a body, or one that is compressed, it is empty.
func (b Body) read(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody || isCompressed(r.Header) {
		return nil, nil
	}
	limit := b.limit()
	if r.ContentLength > int64(limit) {
		return nil, ErrBodyTooLong
	}
	k, ok := r.Body.(*keptBody)
	if !ok || k.closed.Load() {
		k = &keptBody{orig: r.Body}
		r.Body = k
	}
	k.fill(limit, r.ContentLength)
	switch {
	case len(k.kept) > limit:
		return nil, ErrBodyTooLong
	case k.err == io.EOF:
		return k.kept, nil
	case errors.As(k.err, new(*http.MaxBytesError)):
		return nil, ErrBodyTooLong
	}
	return nil, &readError{k.err}
}

// isCompressed tells whether the body is not the text itself. That compressed
// bytes look like no form can't be relied on: they can be made to hold a field
// that isn't in the text.
func isCompressed(h http.Header) bool {
	for _, v := range h["Content-Encoding"] {
		if v = strings.TrimSpace(v); v != "" && !strings.EqualFold(v, "identity") {
			return true
		}
	}
	return false
}

// readError is ErrNoKey and why the body could not be read. A client may cut
// its body off so that it fails, so that is no failure of the server's.
type readError struct{ cause error }

func (e *readError) Error() string   { return ErrNoKey.Error() + ": reading the body failed" }
func (e *readError) Unwrap() []error { return []error{ErrNoKey, e.cause} }

// keptBody stands in for a body whose beginning has been read: it gives that,
// then the rest. As with net/http's, Close may be called while Read waits.
type keptBody struct {
	orig   io.ReadCloser
	kept   []byte // of what was read, that which Read has yet to give
	err    error  // what orig ended in; it isn't read again
	closed atomic.Bool
}

// fill reads on until orig has ended or limit+1 bytes are kept, and allocates no
// more than that. What a client only says will come is allocated for up to
// DefaultMaxBody; for more than that it must send half of it.
func (k *keptBody) fill(limit int, contentLength int64) {
	for k.err == nil && len(k.kept) <= limit {
		if len(k.kept) == cap(k.kept) {
			size := 2 * cap(k.kept)
			if size == 0 {
				size = 512
				if contentLength > 0 {
					size = int(min(contentLength, DefaultMaxBody)) + 1 // and one to see the end
				}
			}
			grown := make([]byte, len(k.kept), min(size, limit+1))
			copy(grown, k.kept)
			k.kept = grown
		}
		var n int
		n, k.err = k.orig.Read(k.kept[len(k.kept):cap(k.kept)])
		k.kept = k.kept[:len(k.kept)+n]
	}
}

func (k *keptBody) Read(p []byte) (int, error) {
	if k.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	if len(k.kept) > 0 {
		n := copy(p, k.kept)
		if k.kept = k.kept[n:]; len(k.kept) == 0 {
			k.kept = nil // let go while the rest is read
		}
		return n, nil
	}
	if k.err != nil {
		return 0, k.err
	}
	return k.orig.Read(p)
}

func (k *keptBody) Close() error {
	k.closed.Store(true)
	return k.orig.Close()
}
