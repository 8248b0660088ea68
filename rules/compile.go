package rules

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/gpudoctor/gpudoctor/rules/data"
	"github.com/gpudoctor/gpudoctor/rules/internal/tables"
)

// uncheckedStages only reject faulty rules, or serve what the evaluation and the built-in rules do not need (with, print,
// templates, rego.metadata). Tests run all of them over the built-in rules, so that a start can skip them.
var uncheckedStages = []ast.StageID{
	ast.StageCheckUnusedImports, ast.StageCheckKeywordOverrides, ast.StageCheckDuplicateImports, ast.StageCheckVoidCalls,
	ast.StageParseMetadataBlocks, ast.StageSetAnnotationSet, ast.StageCheckRuleConflicts, ast.StageCheckUndefinedFuncs,
	ast.StageCheckSafetyRuleHeads, ast.StageCheckRecursion, ast.StageCheckTypes, ast.StageCheckUnsafeBuiltins,
	ast.StageCheckDeprecatedBuiltins, ast.StageBuildRequiredCapabilities, ast.StageSetGraph,
	ast.StageRewriteTemplateStrings, ast.StageRewritePrintCalls, ast.StageRewriteRegoMetadataCalls, ast.StageRewriteWithValues,
}

// program holds compiled rules.
type program struct {
	compiler *ast.Compiler
	modules  map[string]*ast.Module
	// store holds the tables that the modules read.
	store storage.Store

	queries sync.Map // What prepared made, by the rules' ids.
}

// programs are compiled rules that are kept.
type programs struct {
	mu  sync.Mutex // Guards all.
	all []*program
}

// serving is a kept program that can evaluate these rules; nil if no kept program can.
func (k *programs) serving(rules []Rule) *program {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.all {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return p.modules[r.File] == nil }) {
			return p
		}
	}
	return nil
}

// Compile compiles the rules of a profile, or all rules if it is "", and keeps them. Without it, Evaluate compiles the rules
// that it judges, each time: Compile first to judge many facts, or while facts are gathered.
func (s *Set) Compile(profile Profile) error {
	all := slices.DeleteFunc(s.everything(), func(r Rule) bool { return profile != "" && !r.judges(profile) })
	p, err := s.program(all)
	if err != nil {
		return err
	}
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	if !slices.Contains(s.kept.all, p) {
		s.kept.all = append(s.kept.all, p)
	}
	return nil
}

// everything is all rules, and all files of conditions.
func (s *Set) everything() []Rule {
	all := slices.Clone(s.rules)
	for _, file := range slices.Compact(slices.Sorted(maps.Values(s.conditions))) {
		all = append(all, conditionRule(file))
	}
	return all
}

// program returns a program that can evaluate these rules and what they import.
func (s *Set) program(rules []Rule) (*program, error) {
	if p := s.kept.serving(rules); p != nil {
		return p, nil
	}
	modules, err := s.modulesOf(rules)
	if err != nil {
		return nil, err
	}
	return s.compile(modules)
}

// compile compiles modules: the user's rules with all checks, the built-in ones
// without those that tests have made.
func (s *Set) compile(modules map[string]*ast.Module) (*program, error) {
	c := ast.NewCompiler().WithCapabilities(capabilities())
	if s.checked {
		schemas, err := factsSchemas()
		if err != nil {
			return nil, err
		}
		c = c.WithStrict(true).WithSchemas(schemas).WithUseTypeCheckAnnotations(true)
	} else {
		c = c.WithSkipStages(uncheckedStages...)
	}
	lookups := make(map[string]*ast.Module, len(modules))
	for name, m := range modules {
		lookups[name] = indexed(m)
	}
	if c.Compile(lookups); c.Failed() {
		return nil, errors.Join(problems("", c.Errors)...) // It joins one for each fault.
	}
	names := tables.Imported(modules)
	if s.checked {
		names = data.Names() // A user's rule may name a table without an import.
	}
	return &program{compiler: c, modules: modules, store: tables.Store(names)}, nil
}

// factsSchemas is the schema of the facts, so that a path that does not exist
// in them is an error. It holds for each module; one that names it as schema.facts gets the same.
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

// groups are the rules that are asked in one query: the user's own apart,
// so that only those are watched by a stackGuard.
func (s *Set) groups(rules []Rule) [][]Rule {
	groups := map[bool][]Rule{}
	for _, rule := range rules {
		groups[s.own[rule.ID]] = append(groups[s.own[rule.ID]], rule)
	}
	return slices.Collect(maps.Values(groups))
}
