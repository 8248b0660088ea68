package rules

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// areas are the folders that hold rules.
var areas = []string{"amd", "app", "container", "driver", "env", "fleet", "gpu", "host", "launch", "library", "network", "nvlink", "pcie", "storage", "transfer"}

// leastCoverage is how much of each file the Rego tests and the cases must run, in percent.
const leastCoverage = 90.0

// The rules and their cases, as they lie in the repository.
var (
	ruleFiles = os.DirFS(".")
	caseFiles = os.DirFS("../fixtures")
)

// TestLibrary holds the rules to the contract: see docs/rules.md.
func TestLibrary(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "nothing in it runs side by side")
	for _, fault := range libraryFaults(t) {
		t.Error(fault)
	}
}

// TestGoldenFormat checks that every Rego file is formatted as opa fmt does, or formats it.
func TestGoldenFormat(t *testing.T) {
	for name, text := range everyFile(t) {
		expect.Golden(t, name, expect.Value(format.SourceWithOpts(name, text, format.Opts{RegoVersion: ast.RegoV1}))(t))
	}
}

// libraryFaults lists what breaks the contract. Later checks are left out while the rules do not even load.
func libraryFaults(t *testing.T) []string {
	t.Helper()
	files := expect.Value(regoFiles(ruleFiles))(t)
	set, err := load(files, nil)
	if err != nil {
		return lines(err)
	}
	set.checked = true // Compiled with all checks.
	if err := set.keep(set.everything()); err != nil {
		return lines(err)
	}
	quick, err := load(files, nil) // As the program compiles it.
	if err != nil {
		return lines(err)
	}
	var faults []string
	for name, m := range set.modules {
		if _, err := fs.Stat(ruleFiles, testFile(name)); err != nil && !strings.HasPrefix(name, "lib/") && concludes(m) {
			faults = append(faults, fmt.Sprintf("%s: no %s", name, testFile(name)))
		}
		if ref := foreignRef(m); ref != "" {
			faults = append(faults, fmt.Sprintf("%s: %s is not imported; import its package", name, ref))
		}
	}
	found := &faultsOf{}
	strangeNeeds(found, set.rules, set.modules)
	for _, rule := range set.rules {
		found.file = rule.File
		lint(found, set.modules[rule.File])
		faults = append(faults, missingFaults(rule.File, set.modules[rule.File])...)
		faults = append(faults, metadataFaults(rule, set.modules[rule.File])...)
		if verb := fractionVerb.Find(files[rule.File]); verb != nil {
			faults = append(faults, fmt.Sprintf("%s: OPA's sprintf takes %s of no whole number, which any may be; write it with peers.decimal or round it", rule.File, verb))
		}
	}
	for _, err := range found.all {
		faults = append(faults, err.Error())
	}
	faults = append(faults, testFaults(t, set)...)
	faults = append(faults, caseFaults(t, set, quick)...)
	slices.Sort(faults)
	return faults
}

// fractionVerb is a verb of sprintf that prints "%!f(int64=20)" for 20.
var fractionVerb = regexp.MustCompile(`%[0-9]*\.[0-9]f`)

func lines(err error) []string { return strings.Split(err.Error(), "\n") }

func testFile(name string) string { return strings.TrimSuffix(name, ".rego") + "_test.rego" }

// foreignRef returns a reference to data that is not an import. A part is
// compiled with what its rules import, and would lack the rest.
func foreignRef(m *ast.Module) string {
	found := ""
	for _, rule := range m.Rules {
		ast.WalkRefs(rule, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.DefaultRootRef) {
				found = ref.String()
			}
			return false
		})
	}
	return found
}

// metadataFaults checks one rule's metadata beyond what loading it does.
func metadataFaults(rule Rule, m *ast.Module) []string {
	var faults []string
	check := func(is bool, format string, args ...any) {
		if !is {
			faults = append(faults, rule.File+": "+fmt.Sprintf(format, args...))
		}
	}
	area := path.Dir(rule.File)
	check(slices.Contains(areas, area), "%s is not one of the areas %s", area, strings.Join(areas, ", "))
	check(!strings.HasSuffix(rule.Title, "."), "the title ends in a full stop")
	check(len(rule.Links) > 0, "no link")
	for _, link := range rule.Links {
		check(strings.HasPrefix(link.Ref, "https://"), "link %s is not https", link.Ref)
	}
	check(rule.Since != "", "custom.since is missing")
	check(len(rule.Needs) > 0, "custom.needs is missing: the rule would pass where nothing is known")
	for _, id := range namedRemedies(m) {
		check(slices.Contains(rule.Remedies, id), "remedy %s is not in its metadata", id)
	}
	return faults
}

// missingFaults checks that each entry of missing is written out as an object that names a path of the facts.
func missingFaults(file string, m *ast.Module) []string {
	var faults []string
	for _, rule := range m.Rules {
		if rule.Head.Name.String() != "missing" || rule.Head.Key == nil {
			continue
		}
		path := ast.String("")
		if object, ok := rule.Head.Key.Value.(ast.Object); ok {
			if fact := object.Get(ast.StringTerm("fact")); fact != nil {
				path, _ = fact.Value.(ast.String)
			}
		}
		if !inFacts(string(path)) {
			faults = append(faults, fmt.Sprintf("%s:%d: missing does not name a path of the facts, but %q", file, rule.Location.Row, string(path)))
		}
	}
	return faults
}

// namedRemedies lists the remedies that findings name themselves, in place of
// the metadata's, as far as they are written as a list of texts.
func namedRemedies(m *ast.Module) []string {
	var ids []string
	ast.WalkTerms(m, func(t *ast.Term) bool {
		object, ok := t.Value.(ast.Object)
		if !ok {
			return false
		}
		list := object.Get(ast.StringTerm("remedies"))
		if list == nil {
			return false
		}
		if array, ok := list.Value.(*ast.Array); ok {
			array.Foreach(func(t *ast.Term) {
				if s, ok := t.Value.(ast.String); ok {
					ids = append(ids, string(s))
				}
			})
		}
		return false
	})
	return ids
}

// everyFile reads every Rego file, tests included.
func everyFile(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range expect.Value(fs.Glob(ruleFiles, "*/*.rego"))(t) {
		files[name] = expect.Value(fs.ReadFile(ruleFiles, name))(t)
	}
	return files
}

// testFaults runs the Rego tests and checks that they are there and cover their files.
func testFaults(t *testing.T, set *Set) []string {
	t.Helper()
	modules, errs := parse(everyFile(t), true)
	if len(errs) > 0 {
		return expect.Map(errs, func(err error) string { return err.Error() })
	}
	var faults []string
	for _, rule := range set.rules {
		if !concludes(set.modules[rule.File]) && !hasRows(rule.ID) {
			faults = append(faults, rule.File+": it has no findings, in Rego or of rows")
		}
		if offered(set.modules[rule.File], "missing") && !hasTest(modules[testFile(rule.File)], "test_unresolvable") { // Other tests take away what it needs.
			faults = append(faults, fmt.Sprintf("%s: no test_unresolvable...", testFile(rule.File)))
		}
	}
	coverage := cover.New()
	runner := tester.NewRunner().SetModules(modules).SetCompiler(ast.NewCompiler().WithCapabilities(capabilities()).WithStrict(true)).
		SetStore(storeOf(data.Names())).RaiseBuiltinErrors(true)
	if !expect.FewRows() {
		runner = runner.SetCoverageQueryTracer(coverage)
	}
	results, err := runner.RunTests(t.Context(), nil)
	if err != nil {
		return append(faults, lines(err)...)
	}
	for r := range results {
		if !r.Pass() {
			faults = append(faults, fmt.Sprintf("%s:%d: %s fails", r.Location.File, r.Location.Row, r.Name))
		}
	}
	if expect.FewRows() {
		return faults
	}
	faults = append(faults, runCases(t, set, coverage)...)
	report := coverage.Report(modules)
	for name := range set.modules {
		if len(set.modules[name].Rules) == 0 {
			continue
		}
		got := report.Files[name]
		if got == nil || got.Coverage < leastCoverage {
			percent := 0.0
			if got != nil {
				percent = got.Coverage
			}
			faults = append(faults, fmt.Sprintf("%s: tests and cases run %.0f %% of it, less than %.0f%s", name, percent, leastCoverage, notRun(got)))
		}
		if got != nil && testing.Verbose() { // A fault is not to be looked for among a hundred of these.
			t.Logf("%-40s %5.1f %% covered", name, got.Coverage)
		}
	}
	return faults
}

// runCases adds to the coverage what each case runs. All that is found in a case is compared with what it wants, and with
// fixtures/verdicts.txt.
func runCases(t *testing.T, set *Set, coverage *cover.Cover) []string {
	t.Helper()
	cases, err := fixtures.Cases(caseFiles)
	if err != nil {
		return lines(err)
	}
	compiler := ast.NewCompiler().WithCapabilities(capabilities())
	if compiler.Compile(set.modules); compiler.Failed() {
		return lines(compiler.Errors)
	}
	// One query for all, in which a rule of a library is evaluated once for each case.
	var all []*ast.Term
	for _, name := range slices.Sorted(maps.Keys(set.modules)) {
		if !strings.HasPrefix(name, "lib/") || strings.HasPrefix(name, conditionFiles) {
			all = append(all, ast.NewTerm(set.modules[name].Package.Path))
		}
	}
	p := &program{compiler: compiler, store: storeOf(data.Names())}
	query := ast.NewBody(ast.Equality.Expr(ast.VarTerm("x"), ast.ArrayTerm(all...)))
	var faults []string
	for _, c := range cases {
		judged := *c.Facts
		judged.Logs = withOwnLog(judged.Logs, judged.Collectives)
		judged.Logs = withJob(&judged)
		if judged.Profile = c.Want.Profile; judged.Profile == "" {
			judged.Profile = string(Training)
		}
		input := expect.Value(valueOf(&judged))(t)
		if _, err := p.evaluate(t.Context(), query, input, coverage); err != nil {
			faults = append(faults, fmt.Sprintf("case %s: %v", c.Name, err))
		}
	}
	return faults
}

// notRun lists the lines that no test runs, for a fault.
func notRun(file *cover.FileReport) string {
	if file == nil || len(file.NotCovered) == 0 {
		return ""
	}
	var rows []string
	for _, r := range file.NotCovered {
		if r.Start.Row == r.End.Row {
			rows = append(rows, strconv.Itoa(r.Start.Row))
		} else {
			rows = append(rows, fmt.Sprintf("%d-%d", r.Start.Row, r.End.Row))
		}
	}
	return "; not run: lines " + strings.Join(rows, ", ")
}

// concludes reports whether a rule has findings in Rego.
func concludes(m *ast.Module) bool { return offered(m, "findings") }

func hasTest(m *ast.Module, prefix string) bool {
	return m != nil && slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return strings.HasPrefix(r.Head.Name.String(), prefix) })
}

// caseFaults runs every case, and checks that each rule has one that fires it
// and a healthy one that looks alike. quick is the set as the program compiles
// it, in parts and without checks; it must say the same, in CI of every 24th case.
func caseFaults(t *testing.T, set, quick *Set) []string {
	t.Helper()
	cases, err := fixtures.Cases(caseFiles)
	if err != nil {
		return lines(err)
	}
	var faults []string
	fired, try := map[string]bool{}, expect.EachNth(24)
	for _, c := range cases {
		for _, f := range c.Want.Findings {
			fired[f.Rule] = true
		}
		v, err := set.Evaluate(t.Context(), c.Facts, Options{Profile: Profile(c.Want.Profile)})
		if err != nil {
			faults = append(faults, fmt.Sprintf("case %s: %v", c.Name, err))
			continue
		}
		for _, fault := range append(ruleFaults(v), caseFault(c.Want, v)...) {
			faults = append(faults, fmt.Sprintf("case %s: %s", c.Name, fault))
		}
		if !try() { // TestGoldenVerdicts compares all, compiled so, with what is recorded.
			continue
		}
		same, err := quick.Evaluate(t.Context(), c.Facts, Options{Profile: Profile(c.Want.Profile)})
		if err != nil {
			faults = append(faults, fmt.Sprintf("case %s, compiled in parts: %v", c.Name, err))
		} else if diff := cmp.Diff(v, same); diff != "" {
			t.Logf("case %s (-checked +compiled in parts):\n%s", c.Name, diff)
			faults = append(faults, fmt.Sprintf("case %s: the verdict of rules compiled in parts differs", c.Name))
		}
	}
	for _, rule := range set.rules {
		if !fired[rule.ID] {
			faults = append(faults, rule.File+": no case fires it")
		}
		if !slices.ContainsFunc(cases, func(c fixtures.Case) bool { return c.Name == rule.ID+"-healthy" }) {
			faults = append(faults, rule.File+": no case "+rule.ID+"-healthy")
		}
	}
	return faults
}

// ruleFaults lists the rules of a verdict that are themselves at fault.
func ruleFaults(v *Result) []string {
	var faults []string
	for _, s := range v.Skipped {
		if s.Fault {
			faults = append(faults, fmt.Sprintf("%s: %v", s.Rule, s.Missing))
		}
	}
	return faults
}

// ended says in a few words what became of a rule.
func ended(v *Result, id string, found []string) string {
	if i := slices.IndexFunc(v.Skipped, func(s Skipped) bool { return s.Rule == id }); i >= 0 {
		return fmt.Sprintf("the rule was skipped: %v", v.Skipped[i].Missing)
	}
	if why, ok := v.NotApplicable[id]; ok {
		return "the rule does not apply: " + why
	}
	switch {
	case slices.Contains(v.Passed, id):
		return "the rule passed"
	case slices.Contains(found, id):
		return "the rule found something else, or its finding is listed under another"
	}
	return "the rule was not judged"
}

// caseFault compares a verdict with what a case wants.
func caseFault(want fixtures.Want, v *Result) []string {
	var faults []string
	got := expect.Map(v.Findings, func(f Finding) fixtures.Finding {
		return fixtures.Finding{Rule: f.Rule, Subject: f.Subject, Severity: string(f.Severity), Confidence: string(f.Confidence)}
	})
	everywhere := firedIn(v)
	order := func(a, b fixtures.Finding) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	wanted := slices.Clone(want.Findings)
	slices.SortFunc(got, order)
	slices.SortFunc(wanted, order)
	for _, f := range wanted {
		if !slices.Contains(got, f) {
			faults = append(faults, fmt.Sprintf("lacks %+v: %s", f, ended(v, f.Rule, everywhere)))
		}
	}
	for _, f := range got {
		if !slices.Contains(wanted, f) {
			faults = append(faults, fmt.Sprintf("has also %+v", f))
		}
	}
	for _, id := range want.Silent {
		if slices.Contains(everywhere, id) {
			faults = append(faults, fmt.Sprintf("%s is not silent", id))
		}
	}
	for _, id := range want.Skipped {
		if !slices.ContainsFunc(v.Skipped, func(s Skipped) bool { return s.Rule == id }) {
			faults = append(faults, fmt.Sprintf("%s is not skipped", id))
		}
	}
	return faults
}

// TestForbiddenBuiltins checks that functions which reach out of the facts, or are unbounded, are not there for a rule.
func TestForbiddenBuiltins(t *testing.T) {
	all := ast.CapabilitiesForThisVersion().Builtins
	for _, name := range []string{"http.send", "net.lookup_ip_addr", "opa.runtime", "rand.intn", "time.now_ns", "uuid.rfc4122", "bits.lsh", "strings.replace_n"} {
		named := func(b *ast.Builtin) bool { return b.Name == name }
		expect.That(t, slices.ContainsFunc(all, named), "OPA has no function %s", name)
		expect.That(t, !slices.ContainsFunc(capabilities().Builtins, named), "a rule may call %s", name)
	}
}
