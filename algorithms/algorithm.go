package algorithms

// State is what an algorithm remembers of a key, as whole numbers that only it
// understands. An empty State is a key never seen.
type State []int64

// Algorithm decides. Everything is in the arguments: time, limit and state; so
// a decision can be repeated, tested and written again as a script.
//
// These laws hold for every algorithm of this package, and storetest.Laws holds
// others to them:
//
//  1. A refused charge and a look leave the state as it is.
//  2. RetryAfter is tight: at that moment the same charge passes, 1 µs earlier
//     it does not. It is Never if and only if the cost is above the capacity.
//  3. Remaining is tight: that much can be taken now, one more cannot. A look is
//     limited if and only if nothing remains.
//  4. A give-back returns what still counts of what was taken age ago, and never
//     lifts the key above its capacity.
//  5. At now + ResetAfter the key cannot be told from one never seen, and
//     ResetAfter is 0 if it already is.
//  6. In any span of time it lets through at most its documented bound, and a
//     caller who asks without pause gets the documented rate to one part in 10⁹.
//  7. Where the clock steps back, state further ahead than the limit's full span
//     is stale and dropped; state less far ahead is kept, nothing of it drains
//     until then, and the gap is part of RetryAfter and ResetAfter: no step
//     credits anything twice. Laws 2 and 6 are for clocks that do not step back.
//  8. A limit may change from one charge to the next: the units used stay used,
//     up to the new capacity.
//  9. Nothing overflows: any cost and any age is a valid argument, and Params
//     refuses, with the reason, a limit whose numbers do not fit.
//
// Implementations are safe for concurrent use, keep neither slice, and do not
// panic.
type Algorithm interface {
	// Name stands in stored keys beside the policy's. It is made of letters,
	// digits, '-', '_' and '.', and never used again for another meaning of the
	// state.
	Name() string

	// Params validates l and compiles it to the numbers that Decide takes. The
	// error is one or more *[FieldError], joined.
	Params(l Limit) ([]int64, error)

	// Decide makes one charge. It appends the next state to dst, which may be
	// nil but shares no memory with s, and leaves s alone; where it appends
	// nothing, the key is as good as new.
	//
	// s is empty or a state that Decide returned, for this limit or another; now
	// is in µs since the Unix epoch, between ±2⁵²; p is what Params returned.
	// cost > 0 takes, 0 looks, < 0 gives back what was taken age µs ago; a
	// negative age counts as 0.
	Decide(dst, s State, now int64, p []int64, cost, age int64) (State, Result)
}

// Scripted is an [Algorithm] that Redis can run. Its script is the twin of
// Decide: the same arithmetic, so that the two agree to the last bit, which
// storetest.Twin checks.
//
// Lua returns a piece of Lua 5.1 that finds numbers in these locals: now, cost
// and age as Decide has them (no further from 0 than 2⁵³ + 2), the params p1, p2, …,
// and the words of the state s1, s2, …, all nil for a key never seen. It sets
// limited (true or false), limit, remaining, retry (µs, −1 for Never), reset
// (µs) and, where a charge is made, the words n1, n2, … of the next state, or
// none of them where the key is as good as new. What it sets them to for a
// refusal or a look is not used. After a line that is "-- answers" it sets limit,
// remaining and retry only: a single charge, whose answer Decide makes, leaves
// that out.
//
// It calls nothing of Redis, does not return, keeps to at most nine params and
// nine words, and mentions each of them by its name. Whole numbers are exact up
// to 2⁵³; a % b is exact for 0 ≤ a < 2⁵³.
type Scripted interface {
	Algorithm
	Lua() string
}
