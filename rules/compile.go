package rules

import (
	"cmp"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// maxParts bounds the parts that are compiled side by side: the library is
// compiled in each part anew, so that more parts gain ever less.
const maxParts = 4

// uncheckedStages only refuse a faulty rule, or serve what the evaluation does
// not need. Tests hold the built-in rules to all of them, so that a start can
// do without.
var uncheckedStages = []ast.StageID{
	ast.StageCheckUnusedImports, ast.StageCheckKeywordOverrides, ast.StageCheckDuplicateImports, ast.StageCheckVoidCalls,
	ast.StageParseMetadataBlocks, ast.StageSetAnnotationSet, ast.StageCheckRuleConflicts, ast.StageCheckUndefinedFuncs,
	ast.StageCheckSafetyRuleHeads, ast.StageCheckRecursion, ast.StageCheckTypes, ast.StageCheckUnsafeBuiltins,
	ast.StageCheckDeprecatedBuiltins, ast.StageBuildRequiredCapabilities,
}

// part is some of the rules, compiled together with what they import.
type part struct {
	modules  map[string]*ast.Module
	compiler *ast.Compiler
	bytes    int
}

// Compile compiles the rules. Evaluate does so by itself; to call it earlier,
// while facts are still being gathered, saves the time. It may be called from
// several goroutines and does its work once.
func (s *Set) Compile() error {
	s.once.Do(func() { s.err = s.compile() })
	return s.err
}

// compile compiles the built-in rules in several parts side by side, without
// checks that tests have made. Rules of the user's are checked in full, all
// together.
func (s *Set) compile() error {
	parts := []*part{{modules: s.modules}}
	if !s.checked {
		parts = s.split(min(maxParts, runtime.GOMAXPROCS(0)))
	}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { errs[i] = p.compile(s.checked) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err // It joins one for each fault.
		}
	}
	s.part = make(map[string]*part, len(s.rules))
	for _, p := range parts {
		for name := range p.modules {
			s.part[name] = p
		}
	}
	return nil
}

// split deals the rules out to parts of like size, each with the library
// packages that it imports.
func (s *Set) split(n int) []*part {
	parts := make([]*part, n)
	for i := range parts {
		parts[i] = &part{modules: map[string]*ast.Module{}}
	}
	libraries := map[string]string{} // The file of each package.
	for name, m := range s.modules {
		libraries[packageName(m)] = name
	}
	bySize := slices.SortedFunc(slices.Values(s.rules), func(a, b Rule) int {
		return cmp.Or(cmp.Compare(s.bytes[b.File], s.bytes[a.File]), cmp.Compare(a.ID, b.ID))
	})
	for _, rule := range bySize {
		least := slices.MinFunc(parts, func(a, b *part) int { return cmp.Compare(a.bytes, b.bytes) })
		s.addTo(least, rule.File, libraries)
	}
	return slices.DeleteFunc(parts, func(p *part) bool { return len(p.modules) == 0 })
}

// addTo adds a file to a part, and what it imports.
func (s *Set) addTo(p *part, name string, files map[string]string) {
	m := s.modules[name]
	if m == nil || p.modules[name] != nil {
		return
	}
	p.modules[name] = m
	p.bytes += s.bytes[name]
	for _, imported := range m.Imports {
		path := strings.TrimPrefix(imported.Path.String(), "data.")
		for path != "" { // An import may name a rule inside of a package.
			if file, ok := files[path]; ok {
				s.addTo(p, file, files)
				break
			}
			path = path[:max(0, strings.LastIndexByte(path, '.'))]
		}
	}
}

// compile compiles one part.
func (p *part) compile(checked bool) error {
	c := ast.NewCompiler().WithCapabilities(capabilities())
	if checked {
		schemas, err := factsSchemas()
		if err != nil {
			return err
		}
		c = c.WithStrict(true).WithSchemas(schemas).WithUseTypeCheckAnnotations(true)
	} else {
		c = c.WithSkipStages(uncheckedStages...)
	}
	modules := make(map[string]*ast.Module, len(p.modules))
	for name, m := range p.modules {
		modules[name] = indexed(m)
	}
	c.Compile(modules)
	if c.Failed() {
		return errors.Join(problems("", c.Errors)...)
	}
	p.compiler = c
	return nil
}

// factsSchemas is the schema of the facts, so that a path that does not exist
// in them is an error.
func factsSchemas() (*ast.SchemaSet, error) {
	schema, err := readSchema()
	if err != nil {
		return nil, err
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schema)
	set.Put(ast.MustParseRef("schema.facts"), schema)
	return set, nil
}

// groups are the rules that are asked in one query: those that were compiled in one
// part, the user's own apart, so that theirs alone are watched by a stackGuard.
func (s *Set) groups(rules []Rule) [][]Rule {
	type kind struct {
		*part
		own bool
	}
	groups := map[kind][]Rule{}
	for _, rule := range rules {
		k := kind{s.part[rule.File], s.own[rule.ID]}
		groups[k] = append(groups[k], rule)
	}
	return slices.Collect(maps.Values(groups))
}
