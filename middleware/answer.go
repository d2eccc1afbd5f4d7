package middleware

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// problem is a problem document (RFC 9457) with the member that
// draft-ietf-httpapi-ratelimit-headers adds.
type problem struct {
	Type     string   `json:"type,omitempty"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

// DefaultDenied is what answers a refusal where Config.Denied is nil, for those
// who add to it or replace it in some cases only. Of a Decision that refused
// nothing it writes a 429 too, which says "Try again later."
func DefaultDenied(w http.ResponseWriter, r *http.Request, d Decision) {
	p := problem{
		Type:   problemTypes + "quota-exceeded",
		Status: http.StatusTooManyRequests,
		Detail: "Try again later.",
	}
	if 0 <= d.Refused && d.Refused < len(d.Results) {
		p.Detail = waitDetail(d.Results[d.Refused].RetryAfter)
	}
	for i, result := range d.Results {
		if result.Limited && d.Charges[i].Mode != store.Shadow {
			p.Violated = append(p.Violated, d.Charges[i].Policy.Name())
		}
	}
	p.write(w, r)
}

// waitDetail says in words how long to wait.
func waitDetail(retryAfter time.Duration) string {
	if retryAfter == algorithms.Never {
		return "This request asks for more than the limit ever allows."
	}
	if s := retrySeconds(retryAfter); s > 1 {
		return fmt.Sprintf("Try again in %d seconds.", s)
	}
	return "Try again in 1 second."
}

// DefaultFailed is what answers a failure where Config.Failed is nil, for those
// who replace it in some cases only. It tells nothing of the cause.
func DefaultFailed(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case errors.Is(err, ErrBlocked):
		problem{Status: http.StatusForbidden}.write(w, r)
		return
	case errors.Is(err, keyfunc.ErrBodyTooLong):
		problem{Status: http.StatusRequestEntityTooLarge}.write(w, r)
		return
	case errors.Is(err, keyfunc.ErrNoKey):
		problem{Status: http.StatusBadRequest, Detail: "The request lacks something it must have."}.write(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	problem{
		Type:   problemTypes + "temporary-reduced-capacity",
		Status: http.StatusServiceUnavailable,
		Detail: "Try again in 1 second.",
	}.write(w, r)
}

// write answers with p: as JSON to who accepts that, else as a line of text.
func (p problem) write(w http.ResponseWriter, r *http.Request) {
	p.Title = http.StatusText(p.Status)
	contentType, body := "text/plain; charset=utf-8", []byte(strings.TrimSpace(p.Title+". "+p.Detail)+"\n")
	if acceptsJSON(r.Header) {
		if b, err := json.Marshal(p); err == nil {
			contentType, body = "application/problem+json", append(b, '\n')
		}
	}
	h := w.Header()
	// What an outer layer said of the body it expected is not true of this one.
	for _, name := range []string{"Content-Encoding", "Content-Length", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		// A client that is gone is not an error to act on.
		_, _ = w.Write(body)
	}
}

// acceptsJSON tells whether a client names JSON in its Accept header (RFC 9110
// §12.5.1). "Anything" is not enough: that is what browsers and curl send.
func acceptsJSON(h http.Header) bool {
	for _, line := range h["Accept"] {
		for element := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(element, ";")
			media = strings.ToLower(strings.TrimSpace(media))
			if media != "application/json" && media != "application/*" && !strings.HasSuffix(media, "+json") {
				continue
			}
			if !refusesQuality(params) {
				return true
			}
		}
	}
	return false
}

// refusesQuality tells whether params say q=0.
func refusesQuality(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			return strings.Trim(value, "0.") == ""
		}
	}
	return false
}
