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
package algorithms
