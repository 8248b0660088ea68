package lazy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestRegexp(t *testing.T) {
	r := New(`(a)(?P<n>\d+)`)
	expect.That(t, r.compiled == nil, "it is compiled before it is used")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got := r.FindStringSubmatch("xa12")
			expect.That(t, fmt.Sprint(got) == "[a12 a 12]" && r.Get().SubexpIndex("n") == 2, "got %q", got)
		})
	}
	all.Wait()
}

// TestExpressions checks that the expressions of packages compile, and that no package
// compiles one when the program starts.
func TestExpressions(t *testing.T) {
	folders := make(map[string][]*ast.File)
	set := token.NewFileSet()
	root := filepath.Join("..", "..")
	expect.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name[0] == '.' {
			return err
		}
		f, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.SkipObjectResolution)
		folders[filepath.Dir(name)] = append(folders[filepath.Dir(name)], f)
		return err
	}))
	found := 0
	for _, files := range folders {
		constants := constantsOf(files)
		eachSpec(files, token.VAR, func(_ string, value ast.Expr) {
			ast.Inspect(value, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					_, function := n.(*ast.FuncLit)
					return !function // Its body runs later.
				}
				switch at := set.Position(call.Pos()); nameOf(call.Fun) {
				case "regexp.MustCompile":
					t.Errorf("%s: this is compiled at every start; use lazy.New", at)
				case "lazy.New":
					found++
					if expression, err := valueOf(call.Args[0], constants); err != nil {
						t.Errorf("%s: %v", at, err)
					} else if _, err := regexp.Compile(expression); err != nil {
						t.Errorf("%s: %v", at, err)
					}
				}
				return true
			})
		})
	}
	if found < 300 { // 440 in November 2026.
		t.Errorf("only %d expressions were found", found)
	}
}

// constantsOf are the values of the package-level constants by name.
func constantsOf(files []*ast.File) map[string]ast.Expr {
	all := make(map[string]ast.Expr)
	eachSpec(files, token.CONST, func(name string, value ast.Expr) { all[name] = value })
	return all
}

func eachSpec(files []*ast.File, what token.Token, f func(name string, value ast.Expr)) {
	for _, file := range files {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != what {
				continue
			}
			for _, spec := range group.Specs {
				for i, value := range spec.(*ast.ValueSpec).Values {
					f(spec.(*ast.ValueSpec).Names[i].Name, value)
				}
			}
		}
	}
}

// nameOf is the name of a function of another package: "lazy.New".
func nameOf(fun ast.Expr) string {
	if s, ok := fun.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// valueOf is the text of an expression of literals and constants.
func valueOf(e ast.Expr, constants map[string]ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.Ident:
		if value, ok := constants[e.Name]; ok {
			return valueOf(value, constants)
		}
	case *ast.BinaryExpr:
		left, err := valueOf(e.X, constants)
		if err != nil {
			return "", err
		}
		right, err := valueOf(e.Y, constants)
		return left + right, err
	default:
	}
	return "", fmt.Errorf("a regular expression is made of literals and constants, not of a %T", e)
}

// TestNeedsOf checks which literals a match needs.
func TestNeedsOf(t *testing.T) {
	for expression, want := range map[string][]literals{
		`could not read (\S+),`:                     {{"could not read "}},
		`(?:foobar|foobaz|quux\d+)x?`:               {{"fooba", "quux"}},
		`a+(?:bcd)+(?:efg){2,}(?:hij)?(?:klm){0,3}`: {{"bcd"}, {"efg"}},
		`(?i)error: (?-i:ENOENT)`:                   {{"ENOENT"}},
		`foobar|\d+`:                                nil,
		`ab.*cd`:                                    nil,
	} {
		got := New(expression).literals()
		expect.That(t, slices.EqualFunc(got, want, slices.Equal[literals]), "%s: got %q, want %q", expression, got, want)
	}
}

// FuzzRegexp checks that a lazy expression matches what its regular expression matches.
func FuzzRegexp(f *testing.F) {
	f.Add(`could not (?:read|open) "?(\S+)`, "could not open /dev/shm")
	f.Add(`(?i)NCCL (?-i:WARN|INFO)`, "nccl WARN x")
	f.Add(`(ab|c)*d{2,3}[ef]+\x{fffd}`, "add\xff")
	f.Fuzz(func(t *testing.T, expression, text string) {
		plain, err := regexp.Compile(expression)
		if err != nil {
			return
		}
		r := New(expression)
		got, want := r.FindStringSubmatch(text), plain.FindStringSubmatch(text)
		expect.That(t, slices.Equal(got, want), "%q in %q: got %q, want %q", expression, text, got, want)
		expect.Equal(t, plain.MatchString(text), r.MatchString(text), "%q in %q", expression, text)
	})
}
