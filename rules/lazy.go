package rules

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/rules/data/packed"
	"github.com/gpudoctor/gpudoctor/rules/internal/lacks"
	"github.com/gpudoctor/gpudoctor/rules/internal/parts"
	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
)

// indexArchive holds the index of the built-in rules, made from their files by
// TestGoldenIndex: reading it takes a hundredth of the time that parsing them takes.
//
//go:embed index.zip
var indexArchive string

// indexFile is the file in indexArchive.
const indexFile = "index.json"

// index is what is needed of the built-in rules before they are parsed.
type index struct {
	// Rules are their metadata, in order of id.
	Rules []Rule `json:"rules"`
	// Parts are the definitions of all files.
	Parts *parts.Index `json:"parts"`
	// Conditions are the files of the conditions and values that verdicts of messages
	// name.
	Conditions map[string]string `json:"conditions"`
}

func readIndex() (*index, error) {
	var x index
	if err := packed.JSON(packed.Open(indexArchive), indexFile, &x); err != nil {
		return nil, err
	}
	return &x, nil
}

// indexOf makes the index of rules that were parsed from texts.
func indexOf(s *Set, texts map[string][]byte) (*index, error) {
	schema, err := readSchema()
	if err != nil {
		return nil, err
	}
	missing := lacks.Of(schema)
	for _, profile := range profiles {
		var others []ast.Value
		for _, other := range profiles {
			if other != profile {
				others = append(others, ast.String(other))
			}
		}
		missing[parts.InProfile(string(profile))] = reach.Field("profile", reach.ValuesOf(others...))
	}
	return &index{Rules: s.rules, Conditions: s.conditions, Parts: parts.Of(s.modules, texts, setsOf(s.everything(), packagesOf(s.modules)), missing)}, nil
}

// lazyModules parses the definitions of built-in rules once, on first use.
type lazyModules struct {
	index   *index
	mu      sync.Mutex // Guards the others.
	modules map[string]*ast.Module
	parsed  map[string][]int // The definitions that each of the modules has.
}

func newLazyModules(x *index) *lazyModules {
	return &lazyModules{index: x, modules: map[string]*ast.Module{}, parsed: map[string][]int{}}
}

// builtinModules are those of the built-in rules, shared by all sets: the modules
// are never changed.
var builtinModules = sync.OnceValues(func() (*lazyModules, error) {
	x, err := readIndex()
	if err != nil {
		return nil, err
	}
	return newLazyModules(x), nil
})

// modulesOf returns modules with at least what some rules need on facts that lack something (see package lacks),
// in a profile; any profile if it is "". What was parsed before is among them, since a definition may
// refer to it.
func (l *lazyModules) modulesOf(rules []Rule, profile Profile, missing func(lack string) bool) (map[string]*ast.Module, error) {
	roots := setsOf(rules, func(file string) string { return l.index.Parts.Files[file].Package })
	needed := l.index.Parts.Needed(roots, func(lack string) bool {
		if other, ok := parts.Profile(lack); ok {
			return profile != "" && other != string(profile)
		}
		return missing(lack)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	texts, added := map[string][]byte{}, map[string][]int{}
	for file, definitions := range needed {
		more := slices.DeleteFunc(slices.Clone(definitions), func(n int) bool { return slices.Contains(l.parsed[file], n) })
		if len(more) == 0 {
			continue
		}
		text, err := fs.ReadFile(Files(), file)
		if err != nil {
			return nil, fmt.Errorf("read the built-in rules: %w", err)
		}
		if texts[file], err = l.index.Parts.Files[file].Text(text, more); err != nil {
			return nil, &Problem{File: file, Reason: err.Error(), Hint: "run make update"}
		}
		added[file] = more
	}
	parsed, faults := parse(texts, false)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	for file, m := range parsed {
		l.modules[file] = merged(l.modules[file], m)
		l.parsed[file] = append(l.parsed[file], added[file]...)
	}
	return maps.Clone(l.modules), nil
}

// merged is a module with the definitions of two, in the order of the file.
func merged(a, b *ast.Module) *ast.Module {
	if a == nil {
		return b
	}
	m := &ast.Module{Package: a.Package, Imports: a.Imports, Rules: slices.Concat(a.Rules, b.Rules)}
	slices.SortStableFunc(m.Rules, func(a, b *ast.Rule) int { return cmp.Compare(a.Location.Row, b.Location.Row) })
	return m
}
