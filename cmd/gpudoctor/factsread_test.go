package main

import (
	"bytes"
	"encoding/json"
	goast "go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

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
// the reason. All others that nobody reads are deleted, and named in facts.Retired.
var forPeople = map[string]string{
	"facts.ACS.Capability":                     setting,
	"facts.ImageFacts.Entrypoint":              "what a container of the image runs",
	"facts.GPU.MIGPending":                     "the mode that the next reset brings",
	"facts.NarrowestLink.At":                   "which link bounds a path",
	"facts.ImageFacts.Labels":                  identity,
	"facts.AER.Correctable":                    health,
	"facts.AER.TotalFatal":                     health,
	"facts.AER.TotalNonFatal":                  health,
	"facts.RASBlock.Deferred":                  "the rule amd-gpu-fault reads it by the name of the field",
	"facts.NUMANode.Distances":                 "how far nodes are from each other, as numactl shows it",
	"facts.Bond.Up":                            inText,
	"facts.CPU.Family":                         identity,
	"facts.CPU.ModelNumber":                    identity,
	"facts.CPU.Threads":                        "the size of the machine",
	"facts.Communicator.Incomplete":            "which ranks did not come up: where to look next",
	"facts.DeviceNode.GroupID":                 "what docker run --group-add takes (docs/amd.md)",
	"facts.ECC.AggregateCorrected":             health,
	"facts.ECC.AggregateUncorrected":           health,
	"facts.ECC.VolatileCorrected":              health,
	"facts.Fabric.CliqueID":                    identity,
	"facts.Fabric.ClusterUUID":                 identity,
	"facts.Facts.Schema":                       "the version of the document, without which it is refused",
	"facts.GID.IPv4":                           identity,
	"facts.GPU.ComputeMode":                    setting,
	"facts.GPU.ComputePartition":               setting,
	"facts.GPU.MemoryPartition":                setting,
	"facts.GPU.VBIOS":                          identity,
	"facts.GPUDriver.NVMLVersion":              identity,
	"facts.GPUFacts.NVMLStage":                 "the call in which NVML hung or crashed, for a report to NVIDIA",
	"facts.GPULink.DeviceMaxGeneration":        setting,
	"facts.GPULink.Replays":                    health,
	"facts.GPUProcess.UsedBytes":               "how much memory a process holds, as nvidia-smi shows it",
	"facts.HostFacts.BIOS":                     identity,
	"facts.HostFacts.Board":                    identity,
	"facts.HostFacts.Product":                  identity,
	"facts.KFDNode.GPUID":                      identity,
	"facts.KernelEvent.Seconds":                "when it happened",
	"facts.LibraryFacts.Truncated":             extent,
	"facts.NUMAFacts.AllowedNodes":             setting,
	"facts.NVLink.CRCErrors":                   health,
	"facts.PCIDevice.ConfigBytes":              extent,
	"facts.PCIDevice.MaxPayloadBytes":          setting,
	"facts.PCIDevice.MaxPayloadSupportedBytes": setting,
	"facts.PCIDevice.ReadRequestBytes":         setting,
	"facts.PCIDevice.RelaxedOrdering":          setting,
	"facts.Pair.Weight":                        distance,
	"facts.QoS.Trust":                          setting,
	"facts.RASBlock.Correctable":               health,
	"facts.RDMAPort.DefaultRoCE":               setting,
	"facts.RemappedRows.Corrected":             health,
	"facts.RemappedRows.Uncorrected":           health,
	"facts.StorageFacts.MountsLeft":            extent,
	"facts.NVMeDrive.Firmware":                 identity,
	"facts.NVMeDrive.Transport":                identity,
	"facts.Mount.Export":                       identity,
	"facts.Mount.Protocol":                     setting,
}

// TestFactsAreRead checks that each field of the facts is read: by a rule, by Go code other than that which sets it, by
// those who read the report in JSON, or, for a reason, by people.
//
// A rule reads a field where its name stands in a reference or in a list of names to look up: which object that is of
// is not followed, so that a name which two types share, or which a rule uses for something of its own, counts as read.
// Go code reads a field where it selects it in a file that does not set it: a file that does both is the check.
func TestFactsAreRead(t *testing.T) {
	slowWithRace(t)
	fields := factsFields(reflect.TypeFor[facts.Facts](), map[string]string{})
	inGo, inRego, inReport := goReads(t), regoReads(t), reportFields(t)
	expect.Must(t, len(fields) >= 300 && len(inGo) >= 100 && len(inRego) >= 100 && len(inReport) >= 50, "%d fields; %d are read by Go, %d names by rules, %d are in the report", len(fields), len(inGo), len(inRego), len(inReport))
	for field, name := range fields {
		read := inGo[field] || inRego[name] || inReport[field]
		switch reason := forPeople[field]; {
		case read && reason != "":
			t.Errorf("%s is read: take it from forPeople", field)
		case !read && reason == "":
			t.Errorf("nobody reads %s: delete it and name it in facts.Retired, or name it in forPeople with the reason why people need it", field)
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
		fields[id] = name
		factsFields(field.Type, fields)
	}
	return fields
}

// reportFields are the fields of the probe that are part of the report's contract.
func reportFields(t *testing.T) map[string]bool {
	t.Helper()
	b := expect.Value(os.ReadFile(filepath.Join("..", "..", "docs", "report.schema.json")))(t)
	var schema struct {
		Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	expect.NoError(t, json.Unmarshal(b, &schema))
	in := make(map[string]bool)
	for field, name := range factsFields(reflect.TypeFor[facts.Facts](), map[string]string{}) {
		if of, isProbe := strings.CutPrefix(field, "probe."); isProbe {
			typeName, _, _ := strings.Cut(of, ".")
			_, in[field] = schema.Defs[typeName].Properties[name]
		}
	}
	return in
}

// regoReads are the names in references of the rules and their libraries, and in what they look up by a list of names.
func regoReads(t *testing.T) map[string]bool {
	t.Helper()
	files := expect.Value(rules.ReadPolicy(os.DirFS(filepath.Join("..", "..", "rules")), func(name string) bool {
		return strings.HasSuffix(name, ".rego") && !strings.HasSuffix(name, "_test.rego") && !strings.HasPrefix(name, "testdata/")
	}))(t)
	read := make(map[string]bool)
	for name, text := range files {
		m := expect.Value(ast.ParseModule(name, string(text)))(t)
		moduleReads(m, read)
	}
	return read
}

// moduleReads adds what one module reads.
func moduleReads(m *ast.Module, read map[string]bool) {
	add := func(term *ast.Term) {
		if s, isText := term.Value.(ast.String); isText {
			read[string(s)] = true
		}
	}
	imported := make(map[ast.Var]bool)
	for _, i := range m.Imports {
		imported[i.Name()] = true
	}
	look := ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Head: // What it gives, not how it is called.
			for _, t := range []*ast.Term{x.Key, x.Value} {
				if t != nil {
					namesIn(t, imported, add)
				}
			}
			return true
		case *ast.Term:
			namesIn(x, imported, add)
			return true
		case *ast.Expr:
			if x.IsCall() && strings.HasPrefix(x.Operator().String(), "object.") {
				for _, operand := range x.Operands() {
					add(operand)
				}
			}
		}
		return false
	})
	for _, rule := range m.Rules {
		look.Walk(rule)
	}
}

// namesIn passes the names that a term looks up, and those that are in its lists. The
// name after that of a package is a rule's.
func namesIn(t *ast.Term, imported map[ast.Var]bool, add func(*ast.Term)) {
	ast.WalkTerms(t, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Ref:
			own := 1
			if head, isVar := v[0].Value.(ast.Var); isVar && imported[head] {
				own = 2
			}
			for _, part := range v[min(own, len(v)):] {
				add(part)
			}
		case *ast.Array:
			v.Foreach(add)
		case ast.Set:
			v.Foreach(add)
		case ast.Call:
			if strings.HasPrefix(v[0].String(), "object.") {
				for _, argument := range v[1:] {
					add(argument)
				}
			}
		}
		return false
	})
}

// listed is a package as go list shows it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
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
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles", module+"...").Output()
	expect.Must(t, err == nil, "go list: %v", err)
	exports := make(map[string]string)
	var own []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p listed
		expect.NoError(t, decoder.Decode(&p))
		exports[p.ImportPath] = p.Export
		if name, isOwn := strings.CutPrefix(p.ImportPath, module); isOwn && !slices.Contains(factsCarriers, name) {
			own = append(own, p)
		}
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	owners := make(map[types.Object]string) // The fields of the facts, by their objects.
	note := func(p *types.Package) {
		for _, name := range p.Scope().Names() {
			of, isType := p.Scope().Lookup(name).(*types.TypeName)
			if fields, ok := p.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok && isType {
				for field := range fields.Fields() {
					owners[field] = p.Name() + "." + of.Name() + "." + field.Name()
				}
			}
		}
	}
	hold := []string{module + "checks/facts", module + "checks/probe"}
	for _, path := range hold {
		note(expect.Value(imports.Import(path))(t))
	}
	read := make(map[string]bool)
	for _, p := range own {
		var files []*goast.File
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			files = append(files, expect.Value(parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution))(t))
		}
		info := &types.Info{Selections: map[*goast.SelectorExpr]*types.Selection{}, Uses: map[*goast.Ident]types.Object{}}
		config := types.Config{Importer: imports, FakeImportC: true}
		if checked := expect.Value(config.Check(p.ImportPath, set, files, info))(t); slices.Contains(hold, p.ImportPath) {
			note(checked)
		}
		for _, file := range files {
			fileReads(file, info, owners, read)
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
