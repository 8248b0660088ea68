package rules

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"golang.org/x/sync/errgroup"

	"github.com/gpudoctor/gpudoctor/rules/data"
)

// uncheckedStages only reject faulty rules, put statements in an order that ours have already, make indexes of
// comprehensions (ours look up in objects that are made once), or serve what our rules do not use (with, print, templates,
// rego.metadata). Tests run all of them over the built-in rules, so that a start can skip them.
var uncheckedStages = []ast.StageID{
	ast.StageCheckUnusedImports, ast.StageCheckKeywordOverrides, ast.StageCheckDuplicateImports, ast.StageCheckVoidCalls,
	ast.StageParseMetadataBlocks, ast.StageSetAnnotationSet, ast.StageCheckRuleConflicts, ast.StageCheckUndefinedFuncs,
	ast.StageCheckSafetyRuleHeads, ast.StageCheckSafetyRuleBodies, ast.StageCheckRecursion, ast.StageCheckTypes, ast.StageCheckUnsafeBuiltins,
	ast.StageCheckDeprecatedBuiltins, ast.StageBuildRequiredCapabilities, ast.StageSetGraph,
	ast.StageBuildComprehensionIndices, ast.StageRewriteTemplateStrings, ast.StageRewritePrintCalls, ast.StageRewriteRegoMetadataCalls, ast.StageRewriteWithValues,
}

// program holds compiled rules.
type program struct {
	compiler *ast.Compiler
	modules  map[string]*ast.Module
	// store holds the tables that the modules read.
	store storage.Store
}

// programs are compiled rules that are kept.
type programs struct {
	mu sync.Mutex          // Guards of.
	of map[string]*program // By the rules' files.
}

// Compile compiles the rules that these options choose, and keeps them. Without it, Evaluate compiles them each time:
// Compile first to judge many facts, or while facts are gathered.
func (s *Set) Compile(opts Options) error {
	chosen, always, _, err := s.choose(opts)
	if err != nil {
		return err
	}
	if len(opts.Only) == 0 { // A rule alone needs few conditions.
		chosen = append(chosen, s.allConditions()...)
	}
	return s.keep(slices.Concat(chosen, always))
}

// keep compiles rules and keeps them.
func (s *Set) keep(rules []Rule) error {
	compiled, err := s.programs(rules)
	if err != nil {
		return err
	}
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	s.kept.of = compiled
	return nil
}

// programs returns the programs that evaluate these rules, by their files: those that are kept, and new ones for the
// others. OPA compiles on one processor, so the built-in rules are compiled in two halves at the same time; those of one
// folder import much the same libraries.
func (s *Set) programs(rules []Rule) (map[string]*program, error) {
	of := map[string]*program{}
	s.kept.mu.Lock()
	maps.Copy(of, s.kept.of)
	s.kept.mu.Unlock()
	fresh := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return of[r.File] != nil })
	if len(fresh) == 0 {
		return of, nil
	}
	slices.SortFunc(fresh, func(a, b Rule) int { return strings.Compare(a.File, b.File) })
	size := len(fresh) // The user's rules are compiled with all others.
	if s.builtin != nil {
		size = (len(fresh) + 1) / 2
	}
	halves := slices.Collect(slices.Chunk(fresh, size))
	made := make([]*program, len(halves))
	var g errgroup.Group
	for i, half := range halves {
		g.Go(func() (err error) {
			made[i], err = s.program(half)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, half := range halves {
		for _, rule := range half {
			of[rule.File] = made[i]
		}
	}
	return of, nil
}

// everything is all rules, and all files of conditions.
func (s *Set) everything() []Rule { return slices.Concat(s.rules, s.allConditions()) }

func (s *Set) allConditions() []Rule {
	var all []Rule
	for _, file := range slices.Compact(slices.Sorted(maps.Values(s.conditions))) {
		all = append(all, conditionRule(file))
	}
	return all
}

// program compiles these rules and what they import.
func (s *Set) program(rules []Rule) (*program, error) {
	modules, err := s.modulesOf(rules)
	if err != nil {
		return nil, err
	}
	return s.compile(modules)
}

// compile compiles modules: the user's rules with all checks, the built-in ones without those that tests have made.
func (s *Set) compile(modules map[string]*ast.Module) (*program, error) {
	c := ast.NewCompiler().WithCapabilities(capabilities())
	if s.checked {
		c = c.WithStrict(true).WithSchemas(factsSchemas()).WithUseTypeCheckAnnotations(true)
	} else {
		c = c.WithSkipStages(uncheckedStages...)
	}
	if c.Compile(modules); c.Failed() {
		return nil, errors.Join(problems("", c.Errors)...) // It joins one for each fault.
	}
	names := importedTables(modules)
	if s.checked {
		names = data.Names() // A user's rule may name a table without an import.
	}
	return &program{compiler: c, modules: modules, store: storeOf(names)}, nil
}

// factsSchemas is the schema of the facts, so that a path that does not exist
// in them is an error. It holds for each module; one that names it as schema.facts gets the same.
func factsSchemas() *ast.SchemaSet {
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, readSchema())
	set.Put(ast.MustParseRef("schema.facts"), readSchema())
	return set
}
