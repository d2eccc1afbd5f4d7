package layout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each line of Go that the README shows stands in an example that is compiled
// and run.
func TestReadmeShowsExamples(t *testing.T) {
	top := root(t)
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]bool{}
	for _, pattern := range []string{"*/example*_test.go", "*/*/example*_test.go"} {
		files, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(source)) {
				compiled[strings.TrimSpace(line)] = true
			}
		}
	}
	inGo, shown := false, 0
	for line := range strings.Lines(string(readme)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inGo = line == "```go"
		case inGo && line != "":
			if shown++; !compiled[line] {
				t.Errorf("README.md shows a line that no example has: %s", line)
			}
		}
	}
	if shown == 0 {
		t.Error("README.md shows no Go")
	}
}
