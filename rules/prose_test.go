package rules

import (
	"fmt"
	goast "go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// What gpudoctor says to people is prose: the reason why a fact is not known, the words of a rule. No code and no rule
// may look into it, since then a better sentence changes a verdict; meaning travels in fields of its own.

// prose are the names of fields and variables that hold it. A variable of package
// checks and below that is called words holds those of a text that is read.
var prose = []string{"reason", "words", "why"}

// eventLine is the field that holds the line of an event of the kernel log. What a rule needs
// of it is in the event's id and fields.
const eventLine = "message"

// goReaders are the functions that look into a text, by package.
var goReaders = map[string][]string{
	"strings": {
		"Contains", "ContainsAny", "ContainsFunc", "ContainsRune", "Count", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Fields", "FieldsFunc",
		"FieldsFuncSeq", "FieldsSeq", "HasPrefix", "HasSuffix", "Index", "IndexAny", "IndexByte", "IndexFunc", "IndexRune", "LastIndex", "LastIndexAny",
		"LastIndexByte", "LastIndexFunc", "Replace", "ReplaceAll", "Split", "SplitAfter", "SplitAfterN", "SplitAfterSeq", "SplitN", "SplitSeq", "Trim",
		"TrimLeft", "TrimPrefix", "TrimRight", "TrimSuffix",
	},
	"fmt":    {"Sscan", "Sscanf", "Sscanln"},
	"regexp": {"Match", "MatchString"},
}

// goMatchers are the methods of a regular expression that look into a text.
var goMatchers = []string{"MatchString", "FindString", "FindStringIndex", "FindStringSubmatch", "FindStringSubmatchIndex", "FindAllString", "FindAllStringIndex", "FindAllStringSubmatch", "FindAllStringSubmatchIndex", "ReplaceAllString", "ReplaceAllStringFunc", "ReplaceAllLiteralString", "Split"}

// regoReaders are those of Rego.
var regoReaders = []string{
	"contains", "endswith", "glob.match", "indexof", "indexof_n", "regex.find_all_string_submatch_n", "regex.find_n", "regex.match", "regex.replace",
	"regex.split", "replace", "split", "startswith", "strings.any_prefix_match", "strings.any_suffix_match", "strings.count", "strings.replace_n", "substring",
	"trim", "trim_left", "trim_prefix", "trim_right", "trim_suffix",
}

// TestNoCodeReadsProse checks that of every Go file of the module and every rule.
func TestNoCodeReadsProse(t *testing.T) {
	goFiles, calls := 0, 0
	expect.NoError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		goFiles++
		lines, n, err := goProse(filepath.ToSlash(strings.TrimPrefix(name, ".."+string(filepath.Separator))), text)
		calls += n
		for _, line := range lines {
			t.Error(line)
		}
		return err
	}))
	files := expect.Value(regoFiles(os.DirFS(".")))(t)
	modules, errs := parse(files, true)
	expect.Must(t, len(errs) == 0, "%v", errs)
	for name, m := range modules {
		if strings.HasPrefix(name, "testdata/") {
			continue
		}
		lines, n := regoProse("rules/"+name, m, !strings.HasSuffix(name, "_test.rego"))
		calls += n
		for _, line := range lines {
			t.Error(line)
		}
	}
	t.Logf("%d calls that look into a text, in %d Go files and %d rules and libraries", calls, goFiles, len(modules))
	expect.That(t, goFiles >= 100 && len(modules) >= 50, "%d Go files and %d Rego files were looked at", goFiles, len(modules))
}

// isProse reports whether a name is one of those that hold prose.
func isProse(name string) bool { return slices.Contains(prose, strings.ToLower(name)) }

// goProse lists where a Go file looks into prose, and counts where it looks into a text at all.
func goProse(name string, text []byte) (lines []string, calls int, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		return nil, 0, err
	}
	ownWords := strings.HasPrefix(name, "checks/")
	note := func(at goast.Node, what string) {
		if what == "words" && ownWords {
			return
		}
		lines = append(lines, fmt.Sprintf("%s:%d: looks into prose: %s", name, set.Position(at.Pos()).Line, what))
	}
	goast.Inspect(file, func(n goast.Node) bool {
		switch n := n.(type) {
		case *goast.CallExpr:
			if !readsText(n) {
				return true
			}
			calls++
			for _, argument := range n.Args {
				if held := proseIn(argument); held != "" {
					note(n, held)
				}
			}
		case *goast.BinaryExpr:
			if n.Op != token.EQL && n.Op != token.NEQ {
				return true
			}
			for _, pair := range [2][2]goast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
				if held := proseIn(pair[0]); held != "" && isWording(pair[1]) {
					note(n, held)
				}
			}
		case *goast.SwitchStmt:
			if held := proseIn(n.Tag); held != "" {
				note(n, held)
			}
		}
		return true
	})
	return lines, calls, nil
}

// readsText reports whether a call looks into a text.
func readsText(call *goast.CallExpr) bool {
	f, ok := call.Fun.(*goast.SelectorExpr)
	if !ok {
		return false
	}
	if pkg, ok := f.X.(*goast.Ident); ok && slices.Contains(goReaders[pkg.Name], f.Sel.Name) {
		return true
	}
	return slices.Contains(goMatchers, f.Sel.Name)
}

// proseIn names what an expression reads of prose: its last selector, or the
// variable, also inside of a call that makes another text of it.
func proseIn(e goast.Expr) string {
	switch e := e.(type) {
	case *goast.Ident:
		if isProse(e.Name) {
			return e.Name
		}
	case *goast.SelectorExpr:
		if isProse(e.Sel.Name) {
			return e.Sel.Name
		}
	case *goast.ParenExpr:
		return proseIn(e.X)
	case *goast.StarExpr:
		return proseIn(e.X)
	case *goast.UnaryExpr:
		return proseIn(e.X)
	case *goast.IndexExpr:
		return proseIn(e.X)
	case *goast.SliceExpr:
		return proseIn(e.X)
	case *goast.BinaryExpr:
		if e.Op == token.ADD {
			return proseIn(e.X) + proseIn(e.Y)
		}
	case *goast.CallExpr:
		for _, argument := range e.Args {
			if held := proseIn(argument); held != "" {
				return held
			}
		}
	}
	return ""
}

// isWording reports whether an expression is a text that is written out.
func isWording(e goast.Expr) bool {
	literal, ok := e.(*goast.BasicLit)
	return ok && literal.Kind == token.STRING && len(literal.Value) > len(`""`)
}

// regoProse lists where a rule looks into prose, and counts where it looks into a
// text at all. Tests may look into the line of an event: findings have a message, too.
func regoProse(name string, m *ast.Module, rule bool) (lines []string, calls int) {
	isHeld := func(field string) bool { return isProse(field) || rule && field == eventLine }
	note := func(at *ast.Location, what string) {
		lines = append(lines, fmt.Sprintf("%s:%d: looks into prose: %s", name, at.Row, what))
	}
	look := func(at *ast.Location, operator string, operands []*ast.Term) {
		switch {
		case slices.Contains(regoReaders, operator):
			calls++
			for _, o := range operands {
				if held := regoProseIn(o, isHeld); held != "" {
					note(at, held)
				}
			}
		case operator == "equal" || operator == "neq" || operator == "eq" || operator == "internal.member_2":
			for i, o := range operands {
				held := regoProseIn(o, isHeld)
				if held != "" && slices.ContainsFunc(slices.Delete(slices.Clone(operands), i, i+1), isRegoWording) {
					note(at, held)
				}
			}
		}
	}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		if e.IsCall() {
			look(e.Location, e.Operator().String(), e.Operands())
		}
		return false
	})
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if call, ok := t.Value.(ast.Call); ok {
			look(t.Location, call[0].String(), call[1:])
		}
		return false
	})
	return lines, calls
}

// regoProseIn names what a term reads of prose, by the name of the field or variable.
func regoProseIn(t *ast.Term, isHeld func(field string) bool) string {
	switch v := t.Value.(type) {
	case ast.Var:
		if isHeld(string(v)) {
			return string(v)
		}
	case ast.Ref:
		if last, ok := v[len(v)-1].Value.(ast.String); ok && isHeld(string(last)) {
			return v.String()
		}
	case ast.Call:
		if v[0].String() == "object.get" {
			if key, ok := v[2].Value.(ast.String); ok && isHeld(string(key)) {
				return t.String()
			}
		}
		for _, operand := range v[1:] {
			if held := regoProseIn(operand, isHeld); held != "" {
				return held
			}
		}
	}
	return ""
}

// TestProseIsSeen checks that each way to look into prose is found, and that other uses of it are let through.
func TestProseIsSeen(t *testing.T) {
	for body, want := range map[string]int{
		`strings.Contains(u.Reason, "root")`:                        1,
		`strings.HasPrefix(strings.ToLower(reason), "x")`:           1,
		`strings.HasSuffix(d.Reason+"x", "y")`:                      1,
		`strings.Cut(why, ": ")`:                                    1,
		`strings.Contains(lack.Words, lack.Reason)`:                 2,
		`inUse.FindStringSubmatch(p.device.Reason)`:                 1,
		`regexp.MatchString("x", *reason)`:                          1,
		`strings.Split(s.Missing[0].Reason[3:], " ")`:               1,
		`ok(u.Reason == "timeout")`:                                 1,
		`ok("timeout" != m.Words)`:                                  1,
		`strings.Contains(cmp.Or(d.Reason, d.ErrorName), "x")`:      1,
		`ok(u.Reason == "")`:                                        0,
		`ok(u.Reason == v.Reason)`:                                  0,
		`cmp.Or(u.Reason, "no reason")`:                             0,
		`strings.Contains(m.Text, "x")`:                             0,
		`strings.Contains(reasonable, "x")`:                         0,
		`fmt.Sprintf("%s (%s)", m.Words, m.Reason)`:                 0,
		`strings.Join([]string{m.Reason}, "; ")`:                    0,
		"func() { switch u.Reason { case \"x\": } }()":              1,
		"func() { switch { case strings.Contains(why, x): } }()":    1,
		"func() { switch u.Reason { case \"x\": default: f() } }()": 1,
	} {
		lines, _, err := goProse("rules/x.go", []byte("package p\n\nfunc f() {\n\t"+body+"\n}\n"))
		expect.That(t, err == nil && len(lines) == want, "%s: %q, %v, want %d", body, lines, err, want)
	}
	if lines, _, err := goProse("checks/x.go", []byte("package p\n\nfunc f() { strings.Cut(words, x); strings.Cut(why, x) }\n")); err != nil || len(lines) != 1 {
		t.Errorf("in package checks: %q, %v", lines, err)
	}
	for body, want := range map[string]int{
		`contains(t.reason, "root")`:                                           1,
		`endswith(lower(t.reason), "x")`:                                       1,
		`some u in input.unknown; startswith(u.reason, "x")`:                   1,
		`regex.match("x", object.get(t, "reason", ""))`:                        1,
		`x := split(t.reason, " "); x[0] == "a"`:                               1,
		`t.reason == "timeout"`:                                                1,
		`"timeout" == t.reason`:                                                1,
		`t.reason != "x"`:                                                      1,
		`t.reason in {"a", "b"}`:                                               1,
		`not contains(t.reason, "x")`:                                          1,
		`count([1 | some u in input.unknown; indexof(u.reason, "x") > 0]) > 0`: 1,
		`every u in input.unknown { contains(u.reason, "x") }`:                 1,
		`why := t.x; contains(why, "x")`:                                       1,
		`t.reason != ""`:                                                       0,
		`t.reason`:                                                             0,
		`contains(t.text, "x")`:                                                0,
		`some e in input.kernel_log.events; regex.match("x", e.message)`:       1,
		`some e in input.kernel_log.events; contains(lower(e.message), "x")`:   1,
		`some e in input.kernel_log.events; e.message == "x"`:                  1,
		`some e in input.kernel_log.events; sprintf("%s", [e.message])`:        0,
		`x := sprintf("%s", [t.reason]); x`:                                    0,
	} {
		m, err := ast.ParseModuleWithOpts("x.rego", "package p\n\nt := input.t\n\nr if {\n\t"+body+"\n}\n", ast.ParserOptions{RegoVersion: ast.RegoV1})
		expect.Must(t, err == nil, "%s: %v", body, err)
		lines, _ := regoProse("x.rego", m, true)
		expect.That(t, len(lines) == want, "%s: %q, want %d", body, lines, want)
	}
}

// isRegoWording reports whether a term is a text that is written out, or a collection of such.
func isRegoWording(t *ast.Term) bool {
	switch v := t.Value.(type) {
	case ast.String:
		return v != ""
	case ast.Set:
		return slices.ContainsFunc(v.Slice(), isRegoWording)
	case *ast.Array:
		for i := range v.Len() {
			if isRegoWording(v.Elem(i)) {
				return true
			}
		}
	}
	return false
}
