package store

import "time"

// SequentialAt is Sequential with a clock for tests.
func SequentialAt(s Store, now func() time.Time) Store {
	q := Sequential(s).(*sequential)
	q.now = now
	return q
}

// Denials is how many denials a DenyCache keeps.
func Denials(s Store) int {
	n, d := 0, s.(*denyCache)
	for i := range d.shards {
		n += len(d.shards[i].denials)
	}
	return n
}
