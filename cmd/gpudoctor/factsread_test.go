//go:build ci

package main

import (
	goast "go/ast"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

const module = "github.com/gpudoctor/gpudoctor/"

// Reasons why a field of the facts stays that no program reads.
const (
	identity = "it says which device, software or host this is"
	health   = "a counter or state of errors, which support asks for"
	setting  = "a setting or a limit that engineers compare between machines"
	distance = "how far the two devices are from each other, as the vendor's tools print it"
	extent   = "it says how much was read, so that people know what a missing fact means"
	inText   = "what a kind of text is sent for; gpudoctor facts shows it"
)

// forPeople are the fields that no program reads and that people look for in the facts document of a GPU machine, with
// the reason. All others that nobody reads are deleted.
var forPeople = map[string]string{
	"facts.RASBlock.Uncorrectable":    health,
	"facts.ContainerFacts.PCIVisible": extent,
	"facts.ImageLayer.Digest":         identity,
	"facts.ContainerFacts.SysMounted": setting,
	"facts.GPU.Persistence":           "why the driver starts slowly where nothing keeps it loaded",
	"facts.NarrowestLink.At":          "which link bounds a path",
	"facts.RASBlock.Deferred":         "the rule amd-gpu-fault reads it by the name of the field",
	"facts.Clock.Synchronized":        "the rule nodes-differ reads it by its path in rules/data/fleet.yaml",
	"facts.Facts.Schema":              "the version of the document, without which it is refused",
	"facts.GPU.VBIOS":                 identity,
	"facts.HostFacts.Clock":           "the rule nodes-differ reads it by its path in rules/data/fleet.yaml",
	"facts.HostFacts.BIOS":            identity,
	"facts.KernelEvent.Seconds":       "when it happened",
	"facts.LibraryFacts.Truncated":    extent,
}

// TestFactsAreRead checks that each field of the facts is read: by a rule, by Go code other than that which sets it, by
// those who read the report in JSON, or, for a reason, by people.
//
// A rule reads a field where its name stands in a reference or in a list of names to look up: which object that is of
// is not followed, so that a name which two types share, or which a rule uses for something of its own, counts as read.
// Go code reads a field where it selects it in a file that does not set it: a file that does both is the check.
func TestFactsAreRead(t *testing.T) {
	fields := factsFields(reflect.TypeFor[facts.Facts](), map[string]string{})
	inGo, inRego, inReport := goReads(t), regoReads(t), reportFields(t)
	expect.Must(t, len(fields) >= 300 && len(inGo) >= 100 && len(inRego) >= 100 && len(inReport) >= 50, "%d fields; %d are read by Go, %d names by rules, %d are in the report", len(fields), len(inGo), len(inRego), len(inReport))
	for field, name := range fields {
		read := inGo[field] || inRego[name] || inReport[field]
		switch reason := forPeople[field]; {
		case read && reason != "":
			t.Errorf("%s is read: take it from forPeople", field)
		case !read && reason == "":
			t.Errorf("nobody reads %s: delete it, or name it in forPeople with the reason why people need it", field)
		}
	}
	for field := range forPeople {
		expect.That(t, fields[field] != "", "forPeople: the facts have no %s", field)
	}
}

// factsFields adds the fields of a type and of those below it, as "facts.PCIDevice.ACS", with their names in JSON.
func factsFields(t reflect.Type, fields map[string]string) map[string]string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return fields
	}
	for field := range t.Fields() {
		id := path.Base(t.PkgPath()) + "." + t.Name() + "." + field.Name
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, known := fields[id]; known || name == "-" {
			continue
		}
		if !field.Anonymous {
			fields[id] = name
		}
		factsFields(field.Type, fields)
	}
	return fields
}

// reportFields are the fields of the probe that are part of the report's contract.
func reportFields(t *testing.T) map[string]bool {
	t.Helper()
	schema := decoded[struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}](t, expect.Value(os.ReadFile(filepath.Join("..", "..", "docs", "report.schema.json")))(t))
	in := make(map[string]bool)
	for field, name := range factsFields(reflect.TypeFor[facts.Facts](), map[string]string{}) {
		if of, isProbe := strings.CutPrefix(field, "probe."); isProbe {
			typeName, _, _ := strings.Cut(of, ".")
			_, in[field] = schema.Defs[typeName].Properties[name]
		}
	}
	return in
}

// regoRead is a name behind a point that is no function, or a text of a list that is no key of an object.
var regoRead = regexp.MustCompile(`\.([a-z][a-z0-9_]*)(\(?)|(^\s*|[\[({,]\s*|)"((?:[^"\\]|\\.)*)"(:?)`)

// regoReads are the names that rules and their libraries look up.
func regoReads(t *testing.T) map[string]bool {
	t.Helper()
	files := expect.Value(rules.ReadPolicy(os.DirFS(filepath.Join("..", "..", "rules")), func(name string) bool {
		return strings.HasSuffix(name, ".rego") && !strings.HasSuffix(name, "_test.rego") && !strings.HasPrefix(name, "testdata/")
	}))(t)
	read := make(map[string]bool)
	for _, text := range files {
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "#")
			if strings.HasPrefix(code, "import ") || strings.HasPrefix(code, "package ") {
				continue
			}
			for _, m := range regoRead.FindAllStringSubmatch(code, -1) {
				if m[2] == "" && m[5] == "" && (m[1] != "" || m[3] != "") {
					read[m[1]+m[4]] = true
				}
			}
		}
	}
	return read
}

// factsCarriers are packages that carry the facts from one place to another and read
// none of them, and those that serve tests.
var factsCarriers = []string{
	"checks/gather", "checks/host", "checks/internal/redact", "checks/checktest", "checks/text/texttest",
	"fixtures", "fixtures/internal/casefacts",
}

// goReads are the fields that a file selects and does not set.
func goReads(t *testing.T) map[string]bool {
	t.Helper()
	config := packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo, Context: t.Context()}
	all := expect.Value(packages.Load(&config, module+"..."))(t)
	owners := make(map[types.Object]string) // The fields of the facts, by their objects.
	for _, p := range all {
		if p.PkgPath != module+"checks/facts" && p.PkgPath != module+"checks/probe" {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			if fields, ok := p.Types.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
				for field := range fields.Fields() {
					owners[field] = p.Name + "." + name + "." + field.Name()
				}
			}
		}
	}
	read := make(map[string]bool)
	for _, p := range all {
		if slices.Contains(factsCarriers, strings.TrimPrefix(p.PkgPath, module)) {
			continue
		}
		for _, file := range p.Syntax {
			fileReads(file, p.TypesInfo, owners, read)
		}
	}
	return read
}

// fileReads adds the fields that a file selects and does not set: by assignment, in a
// literal, or through a pointer that it takes.
func fileReads(file *goast.File, info *types.Info, owners map[types.Object]string, read map[string]bool) {
	field := func(e goast.Expr) string {
		switch e := e.(type) {
		case *goast.SelectorExpr:
			if s := info.Selections[e]; s != nil && s.Kind() == types.FieldVal {
				return owners[s.Obj()]
			}
		case *goast.Ident: // The key of a literal.
			return owners[info.Uses[e]]
		}
		return ""
	}
	selected, set := make(map[string]bool), make(map[string]bool)
	goast.Inspect(file, func(n goast.Node) bool {
		switch n := n.(type) {
		case *goast.SelectorExpr:
			selected[field(n)] = true
		case *goast.AssignStmt:
			for _, left := range n.Lhs {
				set[field(left)] = true
			}
		case *goast.IncDecStmt:
			set[field(n.X)] = true
		case *goast.UnaryExpr:
			if n.Op == token.AND {
				set[field(n.X)] = true
			}
		case *goast.KeyValueExpr:
			set[field(n.Key)] = true
		}
		return true
	})
	for name := range selected {
		if name != "" && !set[name] {
			read[name] = true
		}
	}
}
