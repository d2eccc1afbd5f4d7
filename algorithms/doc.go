// Package algorithms says how much is too much: limits, and the ways to count
// against them.
//
// An [Algorithm] is a pure function from a key's state, the time, a [Limit]
// and a cost to the next state and a [Result]. It has no clock, no lock and no
// I/O, so the same function decides in memory and, as a script, in Redis.
// Stores keep the states; see package store.
//
// All time inside is a whole number of microseconds. Every number stays within
// ±2⁵³, so that Go's int64 and the double of a Redis script hold the same one.
//
// # Which to use
//
// [GCRA] serves most: an even rate, a burst that is said in so many units, and
// short waits. [LeakyBucket] and [TokenBucket] are the same meter under the names
// that texts use; Stepped they move by whole Periods.
//
// [FixedWindow] is for quotas that people reckon by the calendar: so many a day,
// all of them back at midnight. [SlidingLog] is for a small number that must hold
// exactly: never more than five in any hour. [SlidingCounter] is a window without
// an edge for a large one; its worst is that of a bucket. [Ban] stands beside one
// of these, and keeps out who goes on being refused.
//
//	                      numbers  Limit.  most in     wait for  wait for
//	                      a key    Burst   one Period  1 unit    all
//
//	GCRA                  3        any     B + C − 1   5s        55s
//	LeakyBucket           3        any     B + C − 1   5s        55s
//	LeakyBucket, Stepped  3        ≥ C     B + C − 1   55s       55s
//	TokenBucket           3        any     B + C − 1   5s        55s
//	TokenBucket, Stepped  3        ≥ C     B + C − 1   55s       55s
//	FixedWindow           2        none    2C − 1      55s       55s
//	FixedWindow, Aligned  2        none    2C          45s       45s
//	SlidingCounter        3        none    2C − 1      55s       1m45s
//	SlidingLog            C        none    C           55s       1m0s
//	Ban                   3        none    2C − 2      1h0m0s    1h0m0s
//
// C is Limit.Count, of a Ban its Strikes; B is Limit.Burst, or Count where it is
// left out. The tests named below find each column from the code.
//
// Numbers a key (TestMemory): the most int64s in a [State]. A SlidingLog has one
// for each unit that counts.
//
// Most in one Period (TestOvershoot): the most units that pass from one moment
// until just before the same moment a Period later, whatever the caller does. So a
// bucket lets Burst units through at once, and those that drain in the meantime; a
// window as many again after its edge. The bounds in the comments of the types
// count both ends of a span, and are higher for it. For a Ban the units are
// refusals, in the time Within, where For is no shorter (one refusal, if one
// strike bans).
//
// The waits (TestWaits) are RetryAfter in an example: of 6 units a minute, one is
// spent at each second from 0:10 to 0:15 of a minute of the clock. At 0:15, when
// does one more pass, and when do six at once? A bucket makes room for one unit
// after the other, a window for all at its end, a log for each unit a Period after
// it was taken; a Ban, of an hour here, ends. A SlidingCounter can keep a caller
// waiting for up to two Periods.
//
// docs/algorithms.md has the same at length, with a picture.
package algorithms
