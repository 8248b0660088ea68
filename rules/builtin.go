package rules

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// builtinRules are the built-in rules: the metadata of all, and files that are parsed when a rule needs them. Parsing
// all of them takes longer than everything else that a rule alone needs.
type builtinRules struct {
	rules      []Rule // In order of id.
	conditions map[string]string
	texts      map[string][]byte
	fileOf     map[string]string // By package.
	mu         sync.Mutex        // Guards modules.
	modules    map[string]*ast.Module
	kept       programs
}

// builtin are these, which all sets share: its modules are never changed.
var builtin = sync.OnceValues(func() (*builtinRules, error) {
	texts, err := regoFiles(Files)
	if err != nil {
		return nil, fmt.Errorf("read the built-in rules: %w", err)
	}
	heads := make(map[string][]byte, len(texts))
	for file, text := range texts {
		heads[file] = text
		if !strings.HasPrefix(file, conditionFiles) {
			heads[file] = head(text)
		}
	}
	parsed, errs := parse(heads, true)
	faults := &faultsOf{all: errs}
	l := &builtinRules{conditions: conditionsOf(parsed), texts: texts, fileOf: map[string]string{}, modules: map[string]*ast.Module{}}
	for _, file := range slices.Sorted(maps.Keys(parsed)) {
		m := parsed[file]
		l.fileOf[packageName(m)] = file
		if strings.HasPrefix(packageName(m), rulesPackage) {
			faults.file, faults.line = file, m.Package.Location.Row
			l.rules = append(l.rules, readRule(faults, m, false))
		}
	}
	slices.SortFunc(l.rules, func(a, b Rule) int { return strings.Compare(a.ID, b.ID) })
	return l, errors.Join(faults.all...)
})

// head is a file up to its package, which the metadata stand above.
func head(text []byte) []byte {
	if i := bytes.Index(text, []byte("\npackage ")); i >= 0 {
		line, _, _ := bytes.Cut(text[i+1:], []byte("\n"))
		return text[:i+1+len(line)]
	}
	return text
}

// modulesOf returns the modules of some rules, and those that these import.
func (s *Set) modulesOf(rules []Rule) (map[string]*ast.Module, error) {
	if s.builtin == nil {
		return s.modules, nil
	}
	l := s.builtin
	l.mu.Lock()
	defer l.mu.Unlock()
	next := make([]string, 0, len(rules))
	for _, rule := range rules {
		next = append(next, rule.File)
	}
	modules := map[string]*ast.Module{}
	for len(next) > 0 {
		texts := map[string][]byte{}
		for _, file := range next {
			if l.modules[file] == nil {
				texts[file] = l.texts[file]
			}
		}
		parsed, faults := parse(texts, false)
		if len(faults) > 0 {
			return nil, errors.Join(faults...)
		}
		maps.Copy(l.modules, parsed)
		var imported []string
		for _, file := range next {
			if modules[file] != nil {
				continue
			}
			modules[file] = l.modules[file]
			for _, i := range l.modules[file].Imports {
				if to, ok := l.fileOf[strings.TrimPrefix(i.Path.String(), "data.")]; ok {
					imported = append(imported, to)
				}
			}
		}
		next = imported
	}
	return modules, nil
}
