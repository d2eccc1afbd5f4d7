// Package benchmarks measures weir beside others. It is a module of its own, so
// that what it compares with is no dependency of weir's, and is not in go.work.
//
//	cd benchmarks && GOWORK=off go test -run - -bench . -benchtime 1x
//
// Its command plot draws the picture in docs/algorithms.md.
package benchmarks
