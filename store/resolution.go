package store

import "time"

// Resolution is the unit that the RetryAfter and ResetAfter of s are rounded up to:
// 1 µs, unless s has a method
//
//	Resolution() time.Duration
//
// that says otherwise, as cellstore has. A store around another has that of the
// other.
func Resolution(s Store) time.Duration {
	if r, ok := s.(interface{ Resolution() time.Duration }); ok {
		return r.Resolution()
	}
	return time.Microsecond
}
