package middleware

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// recorder is a ResponseWriter that keeps the status of the answer.
type recorder struct {
	http.ResponseWriter
	status int // 0 until there is one
}

// record wraps w in one that is a Flusher, Hijacker and Pusher where w is, since
// callers ask for them by type, and tells the status.
func record(w http.ResponseWriter) (http.ResponseWriter, *recorder) {
	r := &recorder{ResponseWriter: w}
	_, flusher := w.(http.Flusher)
	_, hijacker := w.(http.Hijacker)
	_, pusher := w.(http.Pusher)
	switch {
	case flusher && hijacker && pusher:
		return struct {
			*recorder
			flushing
			hijacking
			pushing
		}{r, flushing{r}, hijacking{r}, pushing{r}}, r
	case flusher && hijacker: // HTTP/1
		return struct {
			*recorder
			flushing
			hijacking
		}{r, flushing{r}, hijacking{r}}, r
	case flusher && pusher: // HTTP/2
		return struct {
			*recorder
			flushing
			pushing
		}{r, flushing{r}, pushing{r}}, r
	case hijacker && pusher:
		return struct {
			*recorder
			hijacking
			pushing
		}{r, hijacking{r}, pushing{r}}, r
	case flusher:
		return struct {
			*recorder
			flushing
		}{r, flushing{r}}, r
	case hijacker:
		return struct {
			*recorder
			hijacking
		}{r, hijacking{r}}, r
	case pusher: // http.TimeoutHandler
		return struct {
			*recorder
			pushing
		}{r, pushing{r}}, r
	}
	return r, r
}

// code is the status of an answer that is written.
func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}

// WriteHeader keeps the first status that is final, if the ResponseWriter takes it.
func (r *recorder) WriteHeader(status int) {
	r.ResponseWriter.WriteHeader(status)
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.begin()
	return r.ResponseWriter.Write(b)
}

func (r *recorder) WriteString(s string) (int, error) {
	r.begin()
	return io.WriteString(r.ResponseWriter, s)
}

// ReadFrom lets a file be sent by the kernel where the ResponseWriter can. Where
// there is nothing to read, the answer has not begun.
func (r *recorder) ReadFrom(from io.Reader) (int64, error) {
	n, err := io.Copy(r.ResponseWriter, from)
	if n > 0 {
		r.begin()
	}
	return n, err
}

// FlushError is what http.ResponseController asks for first: it tells when the
// client is gone.
func (r *recorder) FlushError() error {
	err := http.NewResponseController(r.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		r.begin()
	}
	return err
}

// CloseNotify is for callers that don't ask whether there is one, such as Stream of
// a gin inside. Where there is none, they are told nothing.
func (r *recorder) CloseNotify() <-chan bool {
	if w, ok := r.ResponseWriter.(interface{ CloseNotify() <-chan bool }); ok {
		return w.CloseNotify()
	}
	return nil
}

// Unwrap is for http.ResponseController. A connection that is taken over through
// it, where the ResponseWriter is no Hijacker itself, counts as 200.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// begin keeps the status of an answer that is written without one.
func (r *recorder) begin() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
}

type flushing struct{ r *recorder }

func (f flushing) Flush() { _ = f.r.FlushError() }

type hijacking struct{ r *recorder }

func (h hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := h.r.ResponseWriter.(http.Hijacker).Hijack()
	if err == nil && h.r.status == 0 {
		h.r.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

type pushing struct{ r *recorder }

func (p pushing) Push(target string, opts *http.PushOptions) error {
	return p.r.ResponseWriter.(http.Pusher).Push(target, opts)
}
