package storetest

// law is a sentence in the comment of algorithms.Algorithm, sentence one in that
// of store.Store. They stand here word for word, to be quoted; a test holds them
// to the comments.
type (
	law      int
	sentence int
)

var laws = map[law]string{
	1: "A refused charge and a look leave the state as it is.",
	2: "RetryAfter is tight: at that moment the same charge passes, 1 µs earlier it does not. It is Never if and only if the cost is above the capacity.",
	3: "Remaining is tight: that much can be taken now, one more cannot. A look is limited if and only if nothing remains.",
	4: "A give-back returns what still counts of what was taken age ago, and never lifts the key above its capacity.",
	5: "At now + ResetAfter the key cannot be told from one never seen, and ResetAfter is 0 if it already is.",
	6: "In any span of time it lets through at most its documented bound, and a caller who asks without pause gets the documented rate to one part in 10⁹.",
	7: "Where the clock steps back, state further ahead than the limit's full span is stale and dropped; state less far ahead is kept, nothing of it drains until then, and the gap is part of RetryAfter and ResetAfter: no step credits anything twice. Laws 2 and 6 are for clocks that do not step back.",
	8: "A limit may change from one charge to the next: the units used stay used, up to the new capacity.",
	9: "Nothing overflows: any cost and any age is a valid argument, and Params refuses, with the reason, a limit whose numbers do not fit.",
}

var sentences = map[sentence]string{
	1:  "Take decides the charges as one group: all are made or none is. A group is refused if a charge in Enforce mode is limited, or a charge in Strike mode is limited as a look. No other call sees or makes half of a group.",
	2:  "results[i] answers charges[i]: it is what the policy's algorithm says of the key's state at the store's time. All charges of a group have one time.",
	3:  "A charge that fits while another refuses the group is not limited: its result has RetryAfter 0, and shows what the key has without the charge.",
	4:  "A refused group changes nothing but its Strike charges. Only a life time shorter than the present ResetAfter is lengthened, by any charge.",
	5:  "A charge in Shadow mode that does not fit is limited in its result, is not made, and refuses nothing.",
	6:  "A charge in Strike mode is made when another charge refuses the group: it takes its cost, or what remains if that is less. Otherwise it is a look.",
	7:  "A give-back (Cost < 0) never refuses. It returns what still counts of what was taken Age ago, and never lifts a key above its capacity; not to give back more than was taken is the caller's part.",
	8:  "A look (Cost 0) makes no key and changes none.",
	9:  "Two charges meet the same state if and only if their keys and the names of their policies and algorithms are equal; the limit is no part of it.",
	10: "A key lives for the ResetAfter of the charge that last changed it, and then is a key never seen. A live key that is limited is not forgotten before, but by a charge in Forget mode.",
	11: "The same state twice in one group is [ErrDuplicate]. A charge without policy or key, with a negative Age, an unknown Mode, a negative cost in Strike mode, or any cost or Age in Forget mode is a *[algorithms.FieldError]. Nothing is charged.",
	12: "If ctx is done before Take begins, its error is returned and nothing is charged.",
	13: "An error is never a denial, and a denial never an error. After an error the results mean nothing. Unless the store can tell that it charged nothing, it does not try again.",
	14: "Take keeps neither slice, and needs as many results as charges.",
	15: "A charge in Forget mode always fits. If the group passes, its key becomes one never seen, whatever it was, and the result is that of a look at such a key.",
}

// broke reports a broken law or sentence, quoted.
func (n law) broke(r reporter, format string, args ...any) {
	r.Helper()
	r.Errorf("law %d is broken: %s\n"+format, append([]any{int(n), laws[n]}, args...)...)
}

func (n sentence) broke(r reporter, format string, args ...any) {
	r.Helper()
	r.Errorf("sentence %d is broken: %s\n"+format, append([]any{int(n), sentences[n]}, args...)...)
}
