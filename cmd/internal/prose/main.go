// Command prose writes what people read in a source tree as plain text, one file for each
// source file, so that a linter of prose can look at it: comments and strings of Go and
// Rego, comments and values of YAML. Each sentence keeps its line.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	regoast "github.com/open-policy-agent/opa/v1/ast"
	"gopkg.in/yaml.v3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: prose TREE FOLDER")
		os.Exit(2)
	}
	n, err := extract(os.DirFS(os.Args[1]), os.Args[2])
	if err == nil && n == 0 {
		err = errors.New("no file holds prose")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "prose: %v\n", err)
		os.Exit(1)
	}
}

// page is the prose of a source file by line, counted from 1.
type page map[int][]string

// add adds a text that begins on a line. A text of several lines takes as many.
func (p page) add(line int, text string) {
	for part := range strings.Lines(text) {
		if part = strings.TrimSpace(part); part != "" {
			p[line] = append(p[line], part)
		}
		line++
	}
}

// String is the text of the page: each line where it stands in the source. What is told
// apart in the source, such as two strings of one line, stays apart.
func (p page) String() string {
	if len(p) == 0 {
		return ""
	}
	var b strings.Builder
	for line := range slices.Max(slices.Collect(maps.Keys(p))) {
		b.WriteString(strings.Join(p[line+1], " | ") + "\n")
	}
	return b.String()
}

// readers read a file by the end of its name.
var readers = map[string]func(name string, text []byte) (page, error){
	".go": ofGo, ".rego": ofRego, ".yaml": ofYAML, ".md": ofMarkdown,
}

// extract writes the prose of a tree into a folder, and says of how many files.
func extract(tree fs.FS, folder string) (int, error) {
	n := 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") || foreign[name] {
				return fs.SkipDir
			}
			return nil
		}
		read, ok := readers[filepath.Ext(name)]
		if !ok || strings.HasSuffix(strings.TrimSuffix(name, filepath.Ext(name)), "_test") {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		p, err := read(name, text)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		out := filepath.Join(folder, filepath.FromSlash(name)+".txt")
		if err := os.MkdirAll(filepath.Dir(out), 0o750); err != nil {
			return err
		}
		n++
		return os.WriteFile(out, []byte(p.String()), 0o600)
	})
	return n, err
}

// foreign are folders whose words are those of other programs, or of the facts of machines.
var foreign = map[string]bool{
	"fixtures/cases": true, "fixtures/faults": true, "fixtures/hosts": true, "fixtures/texts": true, "fixtures/bases": true,
}

// ofGo takes comments and strings, but neither import paths nor tags of fields.
func ofGo(name string, text []byte) (page, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	p := page{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			p.add(files.Position(c.Pos()).Line, strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), "/*"))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind == token.STRING && sentence(n.Value) {
				p.add(files.Position(n.Pos()).Line, literal(n.Value))
			}
		}
		return true
	})
	return p, nil
}

// sentence reports whether a string may be one: a single word is a name.
func sentence(s string) bool { return strings.Contains(strings.TrimSpace(s), " ") }

// literal is the text of a string as it stands in the source. A line break that is written
// as \n stays on its line.
func literal(source string) string {
	if strings.HasPrefix(source, "`") {
		return strings.Trim(source, "`")
	}
	s, err := strconv.Unquote(source)
	if err != nil {
		return source
	}
	return strings.ReplaceAll(s, "\n", " ")
}

// ofRego takes comments, metadata among them, and strings.
func ofRego(name string, text []byte) (page, error) {
	m, err := regoast.ParseModuleWithOpts(name, string(text), regoast.ParserOptions{RegoVersion: regoast.RegoV1})
	if err != nil {
		return nil, err
	}
	p := page{}
	for _, c := range m.Comments {
		p.add(c.Location.Row, string(c.Text))
	}
	regoast.WalkTerms(m, func(t *regoast.Term) bool {
		if v, ok := t.Value.(regoast.String); ok && t.Location != nil && sentence(string(v)) {
			p.add(t.Location.Row, strings.ReplaceAll(string(v), "\n", " "))
		}
		return false
	})
	return p, nil
}

// quoted are the keys of YAML whose values are the words of other programs.
var quoted = map[string]bool{"examples": true, "anchors": true, "like": true, "source": true, "sources": true, "unlike": true, "pattern": true}

// ofYAML takes comments and values.
func ofYAML(_ string, text []byte) (page, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	p, lines := page{}, strings.Split(string(text), "\n")
	for i, line := range lines {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			p.add(i+1, comment)
		}
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			line := n.Line
			if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
				line++
			}
			p.add(line, n.Value)
		}
		for i, c := range n.Content {
			if n.Kind == yaml.MappingNode && (i%2 == 0 || quoted[n.Content[i-1].Value]) {
				continue
			}
			walk(c)
		}
	}
	walk(&root)
	return p, nil
}

// ofMarkdown takes all but blocks of code and code within a line.
func ofMarkdown(_ string, text []byte) (page, error) {
	p, code := page{}, false
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if code {
			continue
		}
		parts := strings.Split(line, "`")
		for i := range parts {
			if i%2 == 1 {
				parts[i] = "code"
			}
		}
		p.add(n, strings.Join(parts, ""))
	}
	return p, nil
}
