package main

import (
	"encoding/json"
	"net/http"
)

// problem is an error's body (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// writeProblem answers with an error.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	write(w, status, "application/problem+json", problem{http.StatusText(status), status, detail})
}

// writeJSON answers with v.
func writeJSON(w http.ResponseWriter, status int, v any) {
	write(w, status, "application/json", v)
}

func write(w http.ResponseWriter, status int, contentType string, v any) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only if the client is gone
}
