package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// maxNames is how many names a package may have at package level, tests left out. A
// package above it holds several subjects: it is split by subject, leaf first.
const maxNames = 200

// stillLarge are the packages that have more and are to be split, each with how many: they
// may get smaller and not larger.
var stillLarge = map[string]int{"checks/text/launch": 230, "cmd/internal/report": 204, "rules": 199}

// TestPackageNames bounds the names of each package.
func TestPackageNames(t *testing.T) {
	t.Parallel()
	names := packageNames(t, filepath.Join("..", ".."))
	if names["checks"] == 0 {
		t.Fatal("no names of package checks were found")
	}
	for name, n := range names {
		if most := max(maxNames, stillLarge[name]); n > most {
			t.Errorf("%s has %d names at package level, at most %d", name, n, most)
		}
	}
	for name, n := range stillLarge {
		if names[name] < n {
			t.Errorf("%s has %d names by now: lower its number in stillLarge, %d", name, names[name], n)
		}
	}
}

// packageNames counts the package-level names by folder.
func packageNames(t *testing.T, root string) map[string]int {
	t.Helper()
	seen := make(map[string]map[string]bool)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || len(name) > 1 && name[0] == '.'):
			return fs.SkipDir
		case path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if seen[dir] == nil {
			seen[dir] = make(map[string]bool)
		}
		for _, d := range file.Decls {
			for _, id := range declared(d) {
				if id.Name != "_" && id.Name != "init" {
					seen[dir][id.Name] = true // Files for several systems declare one name each.
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int, len(seen))
	for dir, names := range seen {
		counts[dir] = len(names)
	}
	return counts
}

// declared are the names that a declaration brings into its package.
func declared(d ast.Decl) (ids []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			ids = append(ids, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				ids = append(ids, s.Name)
			case *ast.ValueSpec:
				ids = append(ids, s.Names...)
			}
		}
	}
	return ids
}
