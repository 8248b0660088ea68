package rules

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Files are the files of the built-in rules, and their Rego tests.
//
//go:embed */*.rego
var Files embed.FS

// factsSchema is the schema of the facts, made from the Go types by TestGoldenFactsSchema. The type checker takes
// it for the user's own rules; a test checks the built-in rules against it, which spares each start the time.
//
//go:embed facts.schema.json
var factsSchema []byte

// The packages that a file may declare.
const (
	rulesPackage = "gpudoctor.rules."
	libPackage   = "gpudoctor.lib."
)

// Limits on what is read from a folder: the built-in rules have 730 KiB in 61 files, the largest 41 KiB.
const (
	maxPolicyBytes = 256 << 10 // Of one file.
	maxPolicyTotal = 2 << 20
	maxPolicyFiles = 1000
)

// maxCompileHeap is how much compiling a policy may add to the memory in use; the
// built-in rules, checked in full, take some 60 MB.
const maxCompileHeap = 160 << 20

// Problem is one fault of a rule's or remedy's file.
type Problem struct {
	// File is its path; Line counts from 1, or is 0 if no line is at fault.
	File string
	Line int
	// Reason says what is wrong, Hint how to fix it.
	Reason string
	Hint   string
}

// Error returns one line that names file, line and reason.
func (p *Problem) Error() string {
	reason := firstLine(p.Reason)
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, reason)
	}
	return fmt.Sprintf("%s: %s", p.File, reason)
}

// firstLine returns a message's first line, without the colon that announced the others.
func firstLine(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return strings.TrimRight(line, ": ")
}

// Set is a set of rules, ready to judge facts.
type Set struct {
	rules   []Rule // In order of id.
	modules map[string]*ast.Module
	// builtin parses the built-in rules when they are needed; nil if modules holds all.
	builtin *builtinRules
	// conditions are the files of the conditions that templates name.
	conditions map[string]string
	checked    bool            // Compile with all checks: some rules are the user's own.
	own        map[string]bool // The files that are the user's own.
	limits     limits

	kept *programs // All sets of built-in rules share theirs.
}

// Load returns the built-in rules. It reads their metadata; they are parsed and compiled when facts are judged.
func Load() (*Set, error) {
	l, err := builtin()
	if err != nil {
		return nil, err
	}
	return &Set{rules: slices.Clone(l.rules), builtin: l, conditions: l.conditions, kept: &l.kept, limits: usual}, nil
}

// LoadWith returns the built-in rules and the user's own in the folder dir, which are held to the same contract: *.rego
// files, in folders of any depth, one rule or library package a file. They are compiled and checked against the schema
// of the facts at once. The error joins one *Problem for each fault.
func LoadWith(dir string) (*Set, error) {
	builtin, err := regoFiles(Files)
	if err != nil {
		return nil, fmt.Errorf("read the built-in rules: %w", err)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("read policy folder: %w", err)
	} else if !info.IsDir() {
		return nil, &Problem{File: dir, Reason: "not a folder", Hint: "name the folder that holds the *.rego and *.yaml files"}
	}
	user, err := ReadPolicyFolder(dir, aRule)
	if err != nil {
		return nil, err
	}
	return loadWithin(usual, dir, builtin, user)
}

// loadWithin loads and compiles the user's rules, from a folder, within limits.
func loadWithin(most limits, dir string, builtin, user map[string][]byte) (*Set, error) {
	s, err := withinLimits(context.Background(), most.compile, 0, maxCompileHeap, func(context.Context) (*Set, error) {
		s, err := load(builtin, user)
		if err != nil {
			return nil, err
		}
		return s, s.keep(s.everything())
	})
	if limited, ok := errors.AsType[limitError](err); ok {
		return nil, &Problem{File: dir, Reason: "compiling the policy " + limited.Error(), Hint: "make it smaller: fewer rules, less deeply nested"}
	}
	return s, err
}

// regoFiles reads every rule and library file below fsys, by path.
func regoFiles(fsys fs.FS) (map[string][]byte, error) { return ReadPolicy(fsys, aRule) }

// aRule reports whether a file holds a rule or a library; Rego tests do not count.
func aRule(name string) bool {
	return path.Ext(name) == ".rego" && !strings.HasSuffix(name, "_test.rego")
}

// ReadPolicyFolder reads the wanted files in the user's folder dir, by their path with that of the folder.
func ReadPolicyFolder(dir string, wanted func(name string) bool) (map[string][]byte, error) {
	files, err := ReadPolicy(os.DirFS(dir), wanted)
	if err != nil {
		return nil, fmt.Errorf("read policy folder %s: %w", dir, err)
	}
	paths := make(map[string][]byte, len(files))
	for name, text := range files {
		paths[filepath.Join(dir, filepath.FromSlash(name))] = text
	}
	return paths, nil
}

// ReadPolicy reads the wanted files below fsys, by path. Hidden files and folders are left out; a file that is too
// large or not a regular file is an error, and so are too many of them.
func ReadPolicy(fsys fs.FS, wanted func(name string) bool) (map[string][]byte, error) {
	files := map[string][]byte{}
	total := 0
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !wanted(name):
			return nil
		}
		info, err := fs.Stat(fsys, name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() > maxPolicyBytes {
			return fmt.Errorf("%s: not a regular file, or larger than %d bytes", name, maxPolicyBytes)
		}
		files[name], err = fs.ReadFile(fsys, name)
		if total += len(files[name]); total > maxPolicyTotal || len(files) > maxPolicyFiles {
			return fmt.Errorf("%s: more than %d files, or more than %d bytes in total", name, maxPolicyFiles, maxPolicyTotal)
		}
		return err
	})
	return files, err
}

// load parses the files and reads their metadata.
func load(builtin, user map[string][]byte) (*Set, error) {
	n := len(builtin) + len(user)
	s := &Set{modules: make(map[string]*ast.Module, n), checked: len(user) > 0, kept: &programs{}, own: map[string]bool{}, limits: usual}
	faults := &faultsOf{}
	owner := map[string]string{} // The file that declares a package.
	for i, files := range []map[string][]byte{builtin, user} {
		modules, errs := parse(files, true)
		faults.all = append(faults.all, errs...)
		for _, name := range slices.Sorted(maps.Keys(modules)) {
			m := modules[name]
			pkg := packageName(m)
			faults.file, faults.line = name, m.Package.Location.Row
			if first, taken := owner[pkg]; taken {
				what := "the library package " + pkg
				if id, ok := strings.CutPrefix(pkg, rulesPackage); ok {
					what = "the rule id " + ruleID(id)
				}
				faults.add("give it another name", "%s is taken by %s", what, first)
				continue
			}
			owner[pkg] = name
			s.modules[name] = m
			if i == 1 {
				s.own[name] = true
			}
			switch {
			case strings.HasPrefix(pkg, rulesPackage):
				s.rules = append(s.rules, readRule(faults, m, i == 1))
				partialSets(faults, m)
				if i == 1 { // A test holds the built-in rules to it.
					lint(faults, m)
				}
			case !strings.HasPrefix(pkg, libPackage):
				faults.add("name it "+rulesPackage+"<id> or "+libPackage+"<name>", "package %s is neither a rule nor a library", pkg)
			}
		}
	}
	slices.SortStableFunc(s.rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	s.conditions = conditionsOf(s.modules)
	if len(faults.all) == 0 {
		s.checkPrecedence(faults)
	}
	if len(faults.all) == 0 && s.checked { // A test holds the built-in rules to it.
		strangeNeeds(faults, slices.DeleteFunc(slices.Clone(s.rules), func(r Rule) bool { return !s.own[r.File] }), s.modules)
	}
	return s, errors.Join(faults.all...)
}

// parse parses files in parallel, with or without their metadata.
func parse(files map[string][]byte, metadata bool) (map[string]*ast.Module, []error) {
	var mu sync.Mutex // Guards modules and faults.
	modules := make(map[string]*ast.Module, len(files))
	var faults []error
	opts := ast.ParserOptions{ProcessAnnotation: metadata, RegoVersion: ast.RegoV1, Capabilities: capabilities()}
	var wg sync.WaitGroup
	for name, text := range files {
		wg.Go(func() {
			m, err := ast.ParseModuleWithOpts(name, string(text), opts)
			if err == nil {
				sortKeys(m)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				faults = append(faults, problems(name, err)...)
				return
			}
			modules[name] = m
		})
	}
	wg.Wait()
	slices.SortFunc(faults, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return modules, faults
}

// sortKeys sorts the keys of a module's objects and sets, as OPA does when somebody first reads them in order. Several
// goroutines read a module, and one may copy what another sorts.
func sortKeys(m *ast.Module) {
	ast.WalkTerms(m, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Object:
			v.Keys()
		case ast.Set:
			v.Slice()
		}
		return false
	})
}

// problems turns OPA's errors, which span several lines, into one Problem each.
func problems(name string, err error) []error {
	var list ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = ast.Errors{one}
	default:
		return []error{&Problem{File: name, Reason: err.Error()}}
	}
	out := make([]error, 0, len(list))
	for _, e := range list {
		p := &Problem{File: name, Reason: e.Message, Hint: hintFor(e)}
		if e.Message == "empty module" {
			p.Reason = "the file is empty"
		}
		if e.Location != nil {
			p.File, p.Line = cmp.Or(e.Location.File, name), e.Location.Row
		}
		out = append(out, p)
	}
	return out
}

// hintFor says how to fix one of OPA's errors, if that is known.
func hintFor(e *ast.Error) string {
	switch {
	case e.Code == ast.TypeErr && strings.Contains(e.Message, "undefined ref: input"):
		return "use a path from the schema of the facts: see rules/facts.schema.json"
	case strings.Contains(e.Message, "undefined function"):
		return "functions that access anything but the facts (network, time, random numbers) are not allowed"
	case strings.Contains(e.Message, "yaml"):
		return "write the METADATA block in YAML, with each line after \"# \""
	}
	return ""
}

// refusedFunctions are the functions that no rule may call, in addition to those whose result does not
// follow from the facts: those that read foreign formats or keys, which facts do not
// contain, and those whose work is unbounded (graph.reachable_paths, regex.globs_match, templates)
// or grows out of proportion to their arguments and that no built-in rule calls.
var refusedFunctions = []string{
	"bits.lsh", "crypto.", "glob.", "graph.reachable_paths", "graphql.", "io.jwt.", "json.unmarshal", "providers.", "regex.globs_match",
	"regex.template_match", "rego.parse_module", "strings.render_template", "strings.replace_n", "units.parse_bytes", "yaml.",
}

// capabilities are those of OPA without the functions whose answer does not follow from the facts (network, time,
// random numbers, what OPA knows of the machine): a rule must give the same answer anywhere and at any time.
var capabilities = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.Builtins = slices.DeleteFunc(slices.Clone(c.Builtins), func(b *ast.Builtin) bool {
		return b.Nondeterministic || slices.ContainsFunc(refusedFunctions, func(r string) bool { return strings.HasPrefix(b.Name, r) })
	})
	c.AllowNet = []string{}
	return c
})

// packageName is a module's package without "data.".
func packageName(m *ast.Module) string { return strings.TrimPrefix(m.Package.Path.String(), "data.") }

// ruleID is the id of a rule's package or file name.
func ruleID(name string) string { return strings.ReplaceAll(name, "_", "-") }

// Rules returns the rules in order of id.
func (s *Set) Rules() []Rule { return slices.Clone(s.rules) }

// Rule returns the rule of that id.
func (s *Set) Rule(id string) (Rule, bool) {
	i, found := slices.BinarySearchFunc(s.rules, id, func(r Rule, id string) int { return cmp.Compare(r.ID, id) })
	if !found {
		return Rule{}, false
	}
	return s.rules[i], true
}
