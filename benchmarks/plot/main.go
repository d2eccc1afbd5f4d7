// Command plot draws docs/algorithms.svg: the same traffic through each algorithm.
// From the directory benchmarks:
//
//	GOWORK=off go run ./plot
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
)

func main() {
	out := flag.String("o", "../docs/algorithms.svg", "the file to write")
	flag.Parse()
	var svg bytes.Buffer
	err := drawSVG(&svg)
	if err == nil {
		err = os.WriteFile(*out, svg.Bytes(), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
