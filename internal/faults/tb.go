package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// bench is the testing.TB of the command: what package redistest asks for.
type bench struct {
	testing.TB // nil: what is not below is not used
	cleanups   []func()
}

// failure is what ends a run of the command.
type failure struct{ error }

// within calls f, and cleans up after it. What was fatal is its error.
func within(f func(testing.TB)) (err error) {
	b := &bench{}
	defer func() {
		for _, clean := range slices.Backward(b.cleanups) {
			clean()
		}
	}()
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = failed.error
		}
	}()
	f(b)
	return nil
}

func (b *bench) Helper()                           {}
func (b *bench) Cleanup(f func())                  { b.cleanups = append(b.cleanups, f) }
func (b *bench) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (b *bench) Errorf(format string, args ...any) { b.Fatalf(format, args...) }
func (b *bench) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }
func (b *bench) Fatal(args ...any)                 { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (b *bench) Skipf(format string, args ...any)  { b.Fatalf(format, args...) }

func (b *bench) TempDir() string {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
