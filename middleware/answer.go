package middleware

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// problem is a problem document (RFC 9457) with the member that
// draft-ietf-httpapi-ratelimit-headers adds. What it says needs no escaping.
type problem struct {
	Type, Detail string // or ""
	Status       int
	Decision     *Decision // whose policies are violated; nil: none
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

		Decision: &d,
	}
	if d.RefusedBy() != "" && d.Refused < len(d.Results) {
		p.Detail = waitDetail(w.Header().Get("Retry-After"), d.Results[d.Refused].RetryAfter)
		if d.Charges[d.Refused].Mode == store.Strike {
			p.Type = problemTypes + "abnormal-usage-detected"
		}
	}
	p.write(w, r)
}

// waitDetail says in words how long to wait: what the header says, which may be
// longer than the limit demands.
func waitDetail(header string, retryAfter time.Duration) string {
	if retryAfter == algorithms.Never {
		return "This request asks for more than the limit ever allows."
	}
	if _, err := strconv.ParseUint(header, 10, 63); err != nil {
		header = strconv.FormatInt(retrySeconds(retryAfter), 10)
	}
	if header == "1" {
		return "Try again in 1 second."
	}
	return "Try again in " + header + " seconds."
}

// DefaultFailed is what answers a failure where Config.Failed is nil, for those
// who replace it in some cases only. It tells nothing of the cause.
func DefaultFailed(w http.ResponseWriter, r *http.Request, err error) {
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
	contentType, body := "text/plain; charset=utf-8", []byte(nil)
	if acceptsJSON(r.Header) {
		contentType, body = "application/problem+json", p.appendJSON(make([]byte, 0, 512))
	} else {
		body = p.appendText(make([]byte, 0, 128))
	}
	h := w.Header()
	// What an outer layer said of the body it expected is not true of this one. But
	// Content-Encoding is: a layer that compresses says so before it calls this one,
	// and compresses whatever comes.
	for _, name := range [...]string{"Content-Length", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	if !slices.ContainsFunc(h["Cache-Control"], func(v string) bool { return strings.Contains(v, "no-store") }) {
		uncached(h, []string{"no-store"})
	}
	values := []string{contentType, "nosniff"}
	h["Content-Type"], h["X-Content-Type-Options"] = values[0:1:1], values[1:2:2]
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		// A client that is gone is not an error to act on.
		_, _ = w.Write(body)
	}
}

func (p problem) appendText(b []byte) []byte {
	b = append(append(b, http.StatusText(p.Status)...), '.')
	if p.Detail != "" {
		b = append(append(b, ' '), p.Detail...)
	}
	return append(b, '\n')
}

func (p problem) appendJSON(b []byte) []byte {
	b = append(b, '{')
	if p.Type != "" {
		b = append(append(append(b, `"type":"`...), p.Type...), `",`...)
	}
	b = append(append(append(b, `"title":"`...), http.StatusText(p.Status)...), `","status":`...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	if p.Detail != "" {
		b = append(append(append(b, `,"detail":"`...), p.Detail...), '"')
	}
	if p.Decision != nil {
		between := `,"violated-policies":["`
		for name := range p.Decision.violated {
			b = append(append(append(b, between...), name...), '"')
			between = `,"`
		}
		if between == `,"` {
			b = append(b, ']')
		}
	}
	return append(b, '}', '\n')
}

// violated yields the names of the policies that refuse.
func (d *Decision) violated(yield func(string) bool) {
	for i := range min(len(d.Charges), len(d.Results)) {
		c := &d.Charges[i]
		if c.Policy != nil && c.Mode != store.Shadow && d.Results[i].Limited && !yield(c.Policy.Name()) {
			return
		}
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
