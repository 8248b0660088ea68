package rules

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/rules/data/packed"
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
	// Files are the files that a rule or library needs, by its own file.
	Files map[string][]string `json:"files"`
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

// indexOf makes the index of parsed rules.
func indexOf(s *Set) *index {
	x := &index{Rules: s.rules, Conditions: s.conditions, Files: make(map[string][]string, len(s.modules))}
	files := make(map[string]string, len(s.modules)) // By package.
	for name, m := range s.modules {
		files[reach.PackageName(m)] = name
	}
	for name, m := range s.modules {
		x.Files[name] = []string{}
		for _, imported := range m.Imports {
			path := strings.TrimPrefix(imported.Path.String(), "data.")
			for path != "" { // An import may name a rule in a package.
				if file, ok := files[path]; ok {
					x.Files[name] = append(x.Files[name], file)
					break
				}
				path = path[:max(0, strings.LastIndexByte(path, '.'))]
			}
		}
		slices.Sort(x.Files[name])
	}
	return x
}

// lazyModules parses built-in rules once, on first use.
type lazyModules struct {
	index   *index
	mu      sync.Mutex // Guards modules.
	modules map[string]*ast.Module
}

// builtinModules are those of the built-in rules, shared by all sets: the modules
// are never changed.
var builtinModules = sync.OnceValues(func() (*lazyModules, error) {
	x, err := readIndex()
	if err != nil {
		return nil, err
	}
	return &lazyModules{index: x, modules: map[string]*ast.Module{}}, nil
})

// modulesOf returns the modules of some rules and those that they import, as far as a
// profile needs them; all of them without a profile.
func (l *lazyModules) modulesOf(rules []Rule, profile Profile) (map[string]*ast.Module, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	needed, texts := map[string]bool{}, map[string][]byte{}
	var need func(file string) error
	need = func(file string) (err error) {
		if needed[file] || !profile.reads(file) {
			return nil
		}
		needed[file] = true
		if l.modules[file] == nil {
			if texts[file], err = embedded.ReadFile(file); err != nil {
				return err
			}
		}
		for _, other := range l.index.Files[file] {
			if err := need(other); err != nil {
				return err
			}
		}
		return nil
	}
	for _, rule := range rules {
		if err := need(rule.File); err != nil {
			return nil, fmt.Errorf("read the built-in rules: %w", err)
		}
	}
	parsed, faults := parse(texts, false)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	maps.Copy(l.modules, parsed)
	all := make(map[string]*ast.Module, len(needed))
	for file := range needed {
		all[file] = l.modules[file]
	}
	return all, nil
}
