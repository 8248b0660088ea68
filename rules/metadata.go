package rules

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// severities and confidences are in order, the worst or the surest first.
var (
	severities  = []Severity{Critical, High, Medium, Low, Info}
	confidences = []Confidence{Confirmed, Likely, Possible}
	profiles    = []Profile{Training, Image, Launch, Fleet}
)

// Rank is 0 for the worst severity, and increases by one for each less severe one.
func (s Severity) Rank() int { return rank(severities, s) }

// Rank is 0 for the surest confidence, and increases by one for each less sure one.
func (c Confidence) Rank() int { return rank(confidences, c) }

func (c Confidence) compare(other Confidence) int { return cmp.Compare(c.Rank(), other.Rank()) }

func rank[T comparable](order []T, v T) int {
	if i := slices.Index(order, v); i >= 0 {
		return i
	}
	return len(order)
}

// kebabCase is the form of an id.
var kebabCase = lazy.New(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// faultsOf collects the faults of files: those of the line of the file that is being checked.
type faultsOf struct {
	file string
	line int
	all  []error
}

func (f *faultsOf) add(hint, format string, args ...any) {
	f.all = append(f.all, &Problem{File: f.file, Line: f.line, Reason: fmt.Sprintf(format, args...), Hint: hint})
}

// readRule reads the metadata of a rule's package and checks that the rule
// keeps the contract. The folders of the user's own mean nothing.
func readRule(faults *faultsOf, m *ast.Module, own bool) Rule {
	pkg := strings.TrimPrefix(packageName(m), rulesPackage)
	rule := Rule{ID: ruleID(pkg), File: faults.file}
	base := strings.TrimSuffix(path.Base(filepath.ToSlash(rule.File)), ".rego")
	switch {
	case !kebabCase.MatchString(rule.ID):
		faults.add("use lower-case words joined by _", "package %s does not yield a rule id", packageName(m))
	case base != pkg:
		faults.add("name the file "+pkg+".rego", "the file's name differs from the package's last part %s", pkg)
	}
	a := packageAnnotations(m)
	if a == nil {
		faults.add("put a # METADATA block right above the package line", "the package has no metadata")
		return rule
	}
	faults.line = a.Location.Row
	custom := make(map[string]any, len(a.Custom))
	if !own {
		maps.Copy(custom, shared[path.Dir(rule.File)])
	}
	maps.Copy(custom, a.Custom)
	for _, key := range []string{"description", "file", "id", "links", "title"} {
		if _, set := custom[key]; set {
			faults.add("", "custom.%s says what stands elsewhere", key)
		}
	}
	read := struct {
		Rule
		Grades map[string]Grade `json:"grades"`
	}{Rule: rule}
	if err := decode(custom, &read); err != nil {
		for reason := range strings.Lines(err.Error()) {
			faults.add("see docs/rules.md for the keys", "custom: %s", strings.TrimSpace(reason))
		}
	}
	rule, rule.Grades = read.Rule, read.Grades
	rule.Title, rule.Description = a.Title, strings.TrimSpace(a.Description)
	for _, res := range a.RelatedResources {
		rule.Links = append(rule.Links, Link{Ref: res.Ref.String(), Description: res.Description})
	}
	rule.Cause = cmp.Or(rule.Cause, rule.ID)
	if len(rule.Profiles) == 0 {
		rule.Profiles = []Profile{Training, Image}
	}
	if len(rule.Areas) == 0 {
		rule.Areas = []Area{AreaPolicy}
	}
	rule.check(faults)
	return rule
}

// check checks the values of a rule's metadata.
func (r *Rule) check(faults *faultsOf) {
	if r.Title == "" {
		faults.add("", "title is missing")
	}
	if r.Description == "" {
		faults.add("", "description is missing")
	}
	words(faults, "severity", severities, r.Severity)
	words(faults, "confidence", confidences, r.Confidence)
	words(faults, "profiles", profiles, r.Profiles...)
	words(faults, "areas", Areas(), r.Areas...)
	if len(r.Remedies) == 0 {
		faults.add("name at least one remedy, the best first", "custom.remedies is missing")
	}
	if r.OwnLog && len(r.Explains) > 0 {
		faults.add("its findings are consequences of others; leave custom.explains out", "custom.own_log is set on a rule that explains others")
	}
	for _, need := range r.Needs {
		if len(need) == 0 || slices.Contains(need, "") {
			faults.add("write it as a list of paths, or of lists of paths one of which is enough", "custom.needs holds an empty list or text")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Grades)) {
		if err := r.Grades[name].check(r.Remedies); err != nil {
			faults.add("", "custom: grades[%s].%v", name, err)
		}
	}
}

// words checks that words are some of those that a key may have.
func words[T ~string](faults *faultsOf, key string, all []T, given ...T) {
	for _, word := range given {
		switch {
		case word == "":
			faults.add("", "custom.%s is missing", key)
		case !slices.Contains(all, word):
			known := strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
			faults.add("", "custom.%s: unknown %s %q: one of %s", key, strings.TrimSuffix(key, "s"), word, known)
		}
	}
}

// answers are the sets that a rule's package defines.
var answers = []string{"findings", "missing", "asks", "not_applicable"}

// partialSets checks that the answers of the package are sets, which are defined (possibly empty) for any facts.
func partialSets(faults *faultsOf, m *ast.Module) {
	found := false
	for _, rule := range m.Rules {
		name := rule.Head.Name.String()
		if !slices.Contains(answers, name) {
			continue
		}
		found = found || name == "findings"
		if rule.Head.RuleKind() != ast.MultiValue || len(rule.Head.Ref()) != 1 {
			faults.line = rule.Location.Row
			faults.add("write \""+name+" contains ... if { ... }\"", "%s is not a set", name)
		}
	}
	faults.line = m.Package.Location.Row
	if !found && !hasRows(ruleID(strings.TrimPrefix(packageName(m), rulesPackage))) {
		faults.add("write \"findings contains {...} if { ... }\"", "the package has no findings")
	}
}

// packageAnnotations returns the metadata block of the package.
func packageAnnotations(m *ast.Module) *ast.Annotations {
	for _, a := range m.Annotations {
		if a.Scope == "package" {
			return a
		}
	}
	return nil
}

// lint rejects "not input...": a missing fact is not a fact that is false. Only missing, asks and not_applicable may
// ask whether a fact exists. A comparison, as in not input.x == "y", is allowed: it states explicitly that everything
// but y counts.
func lint(faults *faultsOf, m *ast.Module) {
	for _, rule := range m.Rules {
		if name := rule.Head.Name.String(); name != "findings" && slices.Contains(answers, name) {
			continue
		}
		ast.WalkExprs(rule, func(e *ast.Expr) bool {
			compares := e.IsEquality() || e.IsCall() && e.Operator().Equal(ast.Equal.Ref())
			if e.Negated && !compares && mentionsInput(e) {
				faults.line = e.Location.Row
				faults.add("write \"== false\", or ask for the fact in asks", "\"not input...\" also holds when the fact is not known")
			}
			return false
		})
	}
}

// mentionsInput reports whether an expression refers to input.
func mentionsInput(e *ast.Expr) bool {
	found := false
	ast.WalkRefs(e, func(ref ast.Ref) bool {
		found = found || ref.HasPrefix(ast.InputRootRef)
		return found
	})
	return found
}
