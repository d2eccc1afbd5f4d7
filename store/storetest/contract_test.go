package storetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// The sentences quoted are those of the interfaces' comments.
func TestQuotes(t *testing.T) {
	check := func(file, typeName string, n int, quote func(int) string) {
		comment := commentOf(t, file, typeName)
		for i := 1; i <= n; i++ {
			if q := quote(i); q == "" || !strings.Contains(comment, q) {
				t.Errorf("%s: sentence %d is not in the comment of %s: %q", file, i, typeName, q)
			}
		}
		if strings.Contains(comment, "\n") || quote(n+1) != "" {
			t.Errorf("%s: more quotes than %d", file, n)
		}
	}
	check("../../algorithms/algorithm.go", "Algorithm", 9, func(i int) string { return laws[law(i)] })
	check("../store.go", "Store", 15, func(i int) string { return sentences[sentence(i)] })
}

func commentOf(t *testing.T, file, typeName string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE && g.Specs[0].(*ast.TypeSpec).Name.Name == typeName {
			return strings.Join(strings.Fields(g.Doc.Text()), " ")
		}
	}
	t.Fatalf("%s: no type %s", file, typeName)
	return ""
}
