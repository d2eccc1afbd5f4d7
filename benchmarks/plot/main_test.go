package main

import (
	"bytes"
	"os"
	"testing"
)

// The picture in the documents is what the code draws today.
func TestCommittedSVG(t *testing.T) {
	var drawn bytes.Buffer
	if err := drawSVG(&drawn); err != nil {
		t.Fatal(err)
	}
	committed, err := os.ReadFile("../../docs/algorithms.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn.Bytes(), committed) {
		t.Error("docs/algorithms.svg is not what is drawn: in benchmarks, GOWORK=off go run ./plot")
	}
}
