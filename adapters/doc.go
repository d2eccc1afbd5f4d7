// Package adapters holds the tests that hold net/http, chi and gin to the same: each
// adapter is a package of its own below.
package adapters
