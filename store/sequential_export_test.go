package store

import "time"

// SequentialAt is Sequential with a clock for tests.
func SequentialAt(s Store, now func() time.Time) Store {
	q := Sequential(s).(*sequential)
	q.now = now
	return q
}
