// Package layout holds the tree to its design, by tests: which package may import
// which, how long a file may be, and that what README.md shows compiles.
package layout
