package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weirgo/weir"

// rule says what a package may reach, directly or through others, beside the
// standard library.
type rule struct {
	inside  []string // packages of this module, by their directory
	outside []string // others, with all below them; what those import is theirs
}

// rules has a row for every package of the module.
var rules = map[string]rule{
	"algorithms":         {},
	"store":              {inside: []string{"algorithms"}},
	"store/memstore":     {inside: []string{"algorithms", "store"}},
	"store/storetest":    {inside: []string{"algorithms", "store", "internal/twin"}},
	"keyfunc":            {inside: []string{"algorithms", "internal/notice"}},
	"keyfunc/normalize":  {outside: []string{"golang.org/x/text"}},
	"middleware":         {inside: []string{"algorithms", "store", "keyfunc", "internal/notice"}},
	"middleware/expvars": {inside: []string{"algorithms", "store", "keyfunc", "middleware", "internal/notice"}},
	"adapters/gin": {
		inside:  []string{"algorithms", "store", "keyfunc", "middleware", "internal/notice"},
		outside: []string{"github.com/gin-gonic/gin"},
	},
	"adapters/chi": {
		inside:  []string{"algorithms", "store", "keyfunc", "middleware", "internal/notice"},
		outside: []string{"github.com/go-chi/chi/v5"},
	},
	"store/breaker": {
		inside:  []string{"algorithms", "store"},
		outside: []string{"github.com/sony/gobreaker/v2"},
	},
	"store/resilient": {
		inside:  []string{"algorithms", "store", "store/memstore", "store/breaker"},
		outside: []string{"github.com/sony/gobreaker/v2"},
	},
	"store/redisstore": {
		inside:  []string{"algorithms", "store", "internal/goredis", "internal/twin"},
		outside: []string{"github.com/redis/go-redis/v9"},
	},
	"store/cellstore/celltest": {outside: []string{"github.com/alicebob/miniredis/v2"}},
	"store/cellstore": {
		inside:  []string{"algorithms", "store", "internal/goredis"},
		outside: []string{"github.com/redis/go-redis/v9"},
	},
	"adapters":          {}, // tests of both
	"internal/casetest": {inside: []string{"algorithms", "store", "store/storetest", "internal/twin"}},
	"internal/goredis":  {outside: []string{"github.com/redis/go-redis/v9"}},
	"internal/layout":   {},
	"internal/notice":   {},
	"internal/redistest": {
		inside:  []string{"algorithms", "store", "store/storetest", "internal/twin"},
		outside: []string{"github.com/alicebob/miniredis/v2", "github.com/redis/go-redis/v9"},
	},
	"internal/twin": {},
}

func (r rule) allows(path string) bool {
	if dir, ok := strings.CutPrefix(path, module+"/"); ok {
		return slices.Contains(r.inside, dir)
	}
	return slices.ContainsFunc(r.outside, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

func TestImports(t *testing.T) {
	imports := load(t)
	for dir, r := range rules {
		path := module + "/" + dir
		if _, ok := imports[path]; !ok {
			t.Errorf("%s has a row here, but there is no such package", dir)
			continue
		}
		walk(t, imports, r, []string{path}, map[string]bool{})
	}
	for path := range imports {
		dir, ok := strings.CutPrefix(path, module+"/")
		if _, has := rules[dir]; ok && !has {
			t.Errorf("%s has no row here: say what it may import", dir)
		}
	}
}

// walk follows the imports of the last package of chain. What is not allowed is
// reported with the way that leads to it, and not followed further.
func walk(t *testing.T, imports map[string][]string, r rule, chain []string, seen map[string]bool) {
	for _, path := range imports[chain[len(chain)-1]] {
		if seen[path] {
			continue
		}
		seen[path] = true
		way := append(slices.Clip(chain), path)
		switch {
		case !r.allows(path):
			t.Errorf("forbidden import: %s", strings.Join(way, " → "))
		case strings.HasPrefix(path, module+"/"):
			walk(t, imports, r, way, seen)
		}
	}
}

// load is what each package that this module builds from imports, without the
// standard library.
func load(t *testing.T) map[string][]string {
	t.Helper()
	out := goCommand(t, root(t), "list", "-deps", "-json=ImportPath,Standard,Imports", "./...")
	standard := map[string]bool{"C": true}
	all := map[string][]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Imports    []string
		}
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Standard {
			standard[p.ImportPath] = true
			continue
		}
		all[p.ImportPath] = p.Imports
	}
	for path, imports := range all {
		all[path] = slices.DeleteFunc(imports, func(i string) bool { return standard[i] })
	}
	return all
}

// maxLines is the length at which a file has more than one subject.
const maxLines = 320

// It reads each file itself, so that go test's cache knows when one changes.
func TestFiles(t *testing.T) {
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch {
			case rel == ".":
			case strings.HasPrefix(name, "."), name == "testdata":
				return fs.SkipDir
			case name == "utils":
				t.Errorf("%s: a directory is named by what it does", rel)
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".go" && ext != ".lua" {
			return nil
		}
		if rel == name {
			t.Errorf("%s: there is no root package", rel)
		}
		if name == "types.go" || name == "interfaces.go" {
			t.Errorf("%s: a file is named by its one subject", rel)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := bytes.Count(text, []byte("\n")); n > maxLines && !strings.HasSuffix(name, "_test.go") {
			t.Errorf("%s: %d lines; at most %d", rel, n, maxLines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func root(t *testing.T) string {
	t.Helper()
	mod := string(bytes.TrimSpace(goCommand(t, ".", "env", "GOMOD")))
	if filepath.Base(mod) != "go.mod" {
		t.Fatalf("no go.mod above this test: go env GOMOD says %q", mod)
	}
	return filepath.Dir(mod)
}

// goCommand runs go for this module alone: a workspace would add to it.
func goCommand(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}
