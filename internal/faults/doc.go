// Command faults shows what becomes of limits while Redis is in trouble. It starts
// Redis servers (one, a cluster, a master with two replicas and a sentinel), puts a
// proxy before them, and breaks them in one way after the other under a fixed load,
// for each policy: closed, open, fallback. A checker goes through all answers.
//
//	GOWORK=off go run . -out ../../docs/faults.md
//	GOWORK=off go run . -soak 10m
//
// The test runs each fault once, short, under the three policies at the same time.
package main
