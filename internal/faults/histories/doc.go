// Package histories holds stores to the first sentences of store.Store's contract
// while many goroutines use them and time goes on: each Take must seem to happen in
// one moment, somewhere between its call and its return. Porcupine looks for an
// order of the calls that explains all answers; where there is none, the store is
// not linearizable. The tests print their seed:
//
//	GOWORK=off WEIR_SEED=17 go test -race -run TestMemstore/gcra ./histories
//
// makes the same calls again, but how they meet is up to the scheduler.
package histories
