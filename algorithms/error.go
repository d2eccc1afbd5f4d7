package algorithms

import "fmt"

// FieldError is one mistake in a configuration. Constructors report all
// mistakes of a call at once, joined by [errors.Join]; find one with
// [errors.As].
type FieldError struct {
	Field  string // where, as the caller writes it: "Limit.Count", "Rules[1].Key"
	Value  any    // what stands there
	Reason string // what is wrong with it and what would be right
}

// Error names the field, the value and the reason.
func (e *FieldError) Error() string {
	if s, ok := e.Value.(string); ok {
		return fmt.Sprintf("weir: %s = %q: %s", e.Field, s, e.Reason)
	}
	return fmt.Sprintf("weir: %s = %v: %s", e.Field, e.Value, e.Reason)
}
