package storetest

import (
	"fmt"
	"runtime"
	"strings"
)

// recorder keeps what a check reports, instead of failing the test.
type recorder struct{ said []string }

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// record runs a check to its end or its Fatalf.
func record(check func(reporter)) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(r)
	}()
	<-done
	return r
}

func (r *recorder) broke(what string) bool {
	for _, s := range r.said {
		if strings.HasPrefix(s, what+" is broken") {
			return true
		}
	}
	return false
}

// summary is the first lines of what was said.
func (r *recorder) summary() string {
	var b strings.Builder
	for i, s := range r.said {
		if i == 5 {
			break
		}
		fmt.Fprintf(&b, "%.300s\n", s)
	}
	return b.String()
}
