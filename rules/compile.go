package rules

import (
	"cmp"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/gpudoctor/gpudoctor/rules/data"
	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
	"github.com/gpudoctor/gpudoctor/rules/internal/tables"
)

// uncheckedStages only reject faulty rules, or serve what the evaluation does
// not need. Tests run all of them over the built-in rules, so that a start can
// skip them.
var uncheckedStages = []ast.StageID{
	ast.StageCheckUnusedImports, ast.StageCheckKeywordOverrides, ast.StageCheckDuplicateImports, ast.StageCheckVoidCalls,
	ast.StageParseMetadataBlocks, ast.StageSetAnnotationSet, ast.StageCheckRuleConflicts, ast.StageCheckUndefinedFuncs,
	ast.StageCheckSafetyRuleHeads, ast.StageCheckRecursion, ast.StageCheckTypes, ast.StageCheckUnsafeBuiltins,
	ast.StageCheckDeprecatedBuiltins, ast.StageBuildRequiredCapabilities,
}

// program holds compiled rules.
type program struct {
	compiler *ast.Compiler
	// rules are the ids of the rules that it can evaluate.
	rules map[string]bool
	// profile is the one whose facts it can judge; any if it is "".
	profile Profile
	// absent are sections that these facts lack.
	absent  []string
	modules map[string]*ast.Module
	// store holds the tables that the modules read.
	store storage.Store

	queries sync.Map // What prepared made, by the rules' ids.
}

// serves reports whether a program can evaluate a rule on facts of a profile.
func (p *program) serves(rule Rule, input ast.Object, profile Profile) bool {
	has := func(section string) bool { return input.Get(ast.StringTerm(section)) != nil }
	return p.rules[rule.ID] && (p.profile == "" || p.profile == profile) && !slices.ContainsFunc(p.absent, has)
}

// Compile compiles the rules of a profile for facts that lack some sections, or all rules for any facts if the profile is "".
// Evaluate compiles only what the facts at hand need, each time: Compile first to judge many, or while facts are gathered.
// It may be called from several goroutines and does its work once.
func (s *Set) Compile(profile Profile, absent ...string) error {
	s.once.Do(func() {
		all := s.everything()
		if s.checked {
			profile = "" // Errors of the user's rules are found whatever the profile.
		}
		all = slices.DeleteFunc(all, func(r Rule) bool { return profile != "" && !r.judges(profile) })
		modules, err := s.modulesOf(all)
		if err != nil {
			s.err = err
			return
		}
		var programs []*program
		if profile == "" {
			var p *program
			p, err = s.compiled(modules, all)
			programs = []*program{p}
		} else {
			known := map[string]*reach.Shape{"profile": reach.ValuesOf(ast.String(profile))}
			for _, section := range absent {
				known[section] = reach.Undefined
			}
			hands := maxPrograms
			if profile == Launch {
				hands = 1 // Many units are judged in parallel.
			}
			programs, err = s.compiledFor(&reach.Shape{Any: true, Known: known}, modules, all, hands)
		}
		for _, p := range programs {
			if err == nil && profile != "" {
				p.profile, p.absent = profile, absent
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ready, s.err = programs, err
	})
	return s.err
}

// everything is all rules, and all files of conditions.
func (s *Set) everything() []Rule {
	all := slices.Clone(s.rules)
	for _, file := range slices.Compact(slices.Sorted(maps.Values(s.conditions))) {
		all = append(all, conditionRule(file))
	}
	return all
}

// TextSections are the sections of the facts that only texts fill.
var TextSections = []string{"benchmarks", "comparisons", "launches", "logs", "runs", "software"}

// maxPrograms bounds the programs that are compiled, and evaluated, in parallel. Each
// compiles the library that its rules need again.
const maxPrograms = 2

// programs returns programs that can together evaluate these rules on some facts, in a profile.
func (s *Set) programs(rules []Rule, input ast.Object, profile Profile) ([]*program, error) {
	s.mu.Lock()
	ready := s.ready
	s.mu.Unlock()
	served := func(r Rule) bool {
		return slices.ContainsFunc(ready, func(p *program) bool { return p.serves(r, input, profile) })
	}
	if !slices.ContainsFunc(rules, func(r Rule) bool { return !served(r) }) {
		return ready, nil
	}
	modules, err := s.modulesOf(rules)
	if err != nil {
		return nil, err
	}
	return s.compiledFor(reach.ValuesOf(input), modules, rules, maxPrograms)
}

// compiledFor compiles what rules need for facts of a shape, into some programs at most, in parallel.
func (s *Set) compiledFor(shape *reach.Shape, modules map[string]*ast.Module, rules []Rule, most int) ([]*program, error) {
	hands := deal(rules, modules, min(most, runtime.GOMAXPROCS(0)))
	list, errs := make([]*program, len(hands)), make([]error, len(hands))
	var wg sync.WaitGroup
	for i, hand := range hands {
		wg.Go(func() {
			list[i], errs[i] = s.compiled(reach.Specialised(modules, setsOf(hand, packagesOf(modules)), shape), hand)
		})
	}
	wg.Wait()
	return list, errors.Join(errs...)
}

// deal distributes rules into n groups with about as many definitions each; few
// rules form one group.
func deal(rules []Rule, modules map[string]*ast.Module, hands int) [][]Rule {
	const oneHand = 4 // So many rules compile in less time than the library that both would need.
	if len(rules) <= oneHand {
		hands = 1
	}
	size := func(r Rule) int { return len(modules[r.File].Rules) }
	out, sizes := make([][]Rule, hands), make([]int, hands)
	largest := slices.Clone(rules)
	slices.SortStableFunc(largest, func(a, b Rule) int { return cmp.Compare(size(b), size(a)) })
	for _, rule := range largest {
		least := slices.Index(sizes, slices.Min(sizes))
		out[least] = append(out[least], rule)
		sizes[least] += size(rule)
	}
	return out
}

// compiled compiles modules: the user's rules with all checks, the built-in ones
// without those that tests have made.
func (s *Set) compiled(all map[string]*ast.Module, rules []Rule) (*program, error) {
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
	modules := make(map[string]*ast.Module, len(all))
	for name, m := range all {
		modules[name] = reach.Indexed(m)
	}
	c.Compile(modules)
	if c.Failed() {
		return nil, errors.Join(problems("", c.Errors)...) // It joins one for each fault.
	}
	names := tables.Imported(all)
	if s.checked {
		names = data.Names() // A user's rule may name a table without an import.
	}
	p := &program{compiler: c, modules: all, store: tables.Store(names), rules: make(map[string]bool, len(rules))}
	for _, rule := range rules {
		p.rules[rule.ID] = true
	}
	return p, nil
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

// groups are the rules of a program that are asked in one query: the user's own apart,
// so that only those are watched by a stackGuard.
func (s *Set) groups(p *program, rules []Rule) [][]Rule {
	groups := map[bool][]Rule{}
	for _, rule := range rules {
		if p.rules[rule.ID] {
			groups[s.own[rule.ID]] = append(groups[s.own[rule.ID]], rule)
		}
	}
	return slices.Collect(maps.Values(groups))
}

// setsOf are the sets that rules offer. packageOf gives the package of a file.
func setsOf(rules []Rule, packageOf func(file string) string) []reach.Global {
	var names []reach.Global
	for _, rule := range rules {
		for _, name := range rule.offers() {
			names = append(names, reach.Global{Package: packageOf(rule.File), Name: name})
		}
	}
	return names
}

// packagesOf gives the packages of modules.
func packagesOf(modules map[string]*ast.Module) func(file string) string {
	return func(file string) string { return reach.PackageName(modules[file]) }
}
