package normalize

import "unicode"

// ignorable has the property Default_Ignorable_Code_Point, as
// DerivedCoreProperties.txt of the Unicode Character Database derives it. The
// package unicode lacks it.
func ignorable(r rune) bool {
	switch {
	case r < 0xAD: // the first is the soft hyphen
		return false
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case !unicode.Is(unicode.Cf, r):
		return false
	}
	return !unicode.Is(unicode.Prepended_Concatenation_Mark, r) &&
		(r < 0xFFF9 || r > 0xFFFB) && // interlinear annotation
		(r < 0x13430 || r > 0x1343F) // joiners of Egyptian hieroglyphs
}
