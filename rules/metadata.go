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
	profiles    = []Profile{Training, Image, Launch}
)

// Rank is 0 for the worst severity, and increases by one for each less severe one.
func (s Severity) Rank() int { return rank(severities, s) }

// Rank is 0 for the surest confidence, and increases by one for each less
// sure one.
func (c Confidence) Rank() int { return rank(confidences, c) }

func (c Confidence) compare(other Confidence) int { return cmp.Compare(c.Rank(), other.Rank()) }

func rank[T comparable](order []T, v T) int {
	if i := slices.Index(order, v); i >= 0 {
		return i
	}
	return len(order)
}

// ParseSeverity returns the severity of that name.
func ParseSeverity(name string) (Severity, error) { return oneOf("severity", severities, name) }

// ParseProfile returns the profile of that name.
func ParseProfile(name string) (Profile, error) { return oneOf("profile", profiles, name) }

// oneOf returns the value of that name, or an error that lists all values.
func oneOf[T ~string](what string, all []T, name string) (T, error) {
	if slices.Contains(all, T(name)) {
		return T(name), nil
	}
	names := make([]string, 0, len(all))
	for _, v := range all {
		names = append(names, string(v))
	}
	return "", fmt.Errorf("unknown %s %q: one of %s", what, name, strings.Join(names, ", "))
}

// kebabCase is the form of an id.
var kebabCase = lazy.New(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// metadataReader reads one rule's metadata and collects its faults.
type metadataReader struct {
	file   string
	line   int
	custom map[string]any
	// in is the part of custom that is read: "grades.NAME.", or all.
	in     string
	faults []error
}

func (r *metadataReader) fault(hint, format string, args ...any) {
	r.faults = append(r.faults, &Problem{File: r.file, Line: r.line, Reason: fmt.Sprintf(format, args...), Hint: hint})
}

// text returns a custom string and takes it off the list.
func (r *metadataReader) text(key string) string {
	v, set := r.custom[key]
	delete(r.custom, key)
	s, ok := v.(string)
	if set && !ok {
		r.fault("write it in quotes", "custom.%s%s is not a string", r.in, key)
	}
	return s
}

// list returns a custom list of strings and takes it off the list.
func (r *metadataReader) list(key string) []string {
	v, set := r.custom[key]
	delete(r.custom, key)
	if !set {
		return nil
	}
	items, ok := v.([]any)
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, isText := item.(string)
		ok = ok && isText
		out = append(out, s)
	}
	if !ok {
		r.fault("write it as [one, two]", "custom.%s%s is not a list of strings", r.in, key)
		return nil
	}
	return out
}

// readRule reads the metadata of a rule's package and checks that the rule
// keeps the contract. The folders of the user's own mean nothing.
func readRule(file string, m *ast.Module, own bool) (Rule, []error) {
	pkg := strings.TrimPrefix(packageName(m), rulesPackage)
	rule := Rule{ID: ruleID(pkg), File: file}
	r := &metadataReader{file: file, line: m.Package.Location.Row}
	base := strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".rego")
	switch {
	case !kebabCase.MatchString(rule.ID):
		r.fault("use lower-case words joined by _", "package %s does not yield a rule id", packageName(m))
	case base != pkg:
		r.fault("name the file "+pkg+".rego", "the file's name differs from the package's last part %s", pkg)
	}
	a := packageAnnotations(m)
	if a == nil {
		r.fault("put a # METADATA block right above the package line", "the package has no metadata")
		return rule, r.faults
	}
	r.line = a.Location.Row
	r.custom = make(map[string]any, len(a.Custom))
	if !own {
		maps.Copy(r.custom, shared[path.Dir(file)])
	}
	maps.Copy(r.custom, a.Custom)
	rule.Title, rule.Description = a.Title, strings.TrimSpace(a.Description)
	for _, res := range a.RelatedResources {
		rule.Links = append(rule.Links, Link{Ref: res.Ref.String(), Description: res.Description})
	}
	rule.Cause = r.text("cause")
	if rule.Cause == "" {
		rule.Cause = rule.ID
	}
	severity, confidence := r.text("severity"), r.text("confidence")
	rule.Remedies, rule.Explains, rule.FirstOf = r.list("remedies"), r.list("explains"), r.list("first_of")
	rule.Grades = r.grades(rule.Remedies)
	for _, name := range r.list("profiles") {
		profile, err := ParseProfile(name)
		if err != nil {
			r.fault("", "custom.profiles: %v", err)
		}
		rule.Profiles = append(rule.Profiles, profile)
	}
	if len(rule.Profiles) == 0 {
		rule.Profiles = []Profile{Training, Image}
	}
	rule.Since = r.text("since")
	rule.LastResort, rule.Unexplained, rule.OwnLog = r.flag("last_resort"), r.flag("unexplained"), r.flag("own_log")
	if rule.OwnLog && len(rule.Explains) > 0 {
		r.fault("its findings are consequences of others; leave custom.explains out", "custom.own_log is set on a rule that explains others")
	}
	rule.Symptom = r.flag("symptom")
	rule.Needs, rule.Areas = r.needs(), r.areas()
	r.required("title", rule.Title)
	r.required("description", rule.Description)
	if r.required("custom.severity", severity) {
		var err error
		if rule.Severity, err = ParseSeverity(severity); err != nil {
			r.fault("", "custom.severity: %v", err)
		}
	}
	if r.required("custom.confidence", confidence) {
		var err error
		if rule.Confidence, err = oneOf("confidence", confidences, confidence); err != nil {
			r.fault("", "custom.confidence: %v", err)
		}
	}
	if len(rule.Remedies) == 0 {
		r.fault("name at least one remedy, the best first", "custom.remedies is missing")
	}
	for _, key := range slices.Sorted(maps.Keys(r.custom)) {
		r.fault("the keys are areas, cause, confidence, explains, first_of, grades, last_resort, needs, own_log, profiles, remedies, severity, since, symptom, unexplained", "unknown key custom.%s", key)
	}
	return rule, r.faults
}

// flag reads a key that is true or missing.
func (r *metadataReader) flag(key string) bool {
	value, ok := r.custom[key]
	delete(r.custom, key)
	set, isBool := value.(bool)
	if ok && !isBool {
		r.fault("", "custom.%s is neither true nor false", key)
	}
	return set
}

// required notes that a text is missing.
func (r *metadataReader) required(key, text string) bool {
	if text == "" {
		r.fault("", "%s is missing", key)
	}
	return text != ""
}

// answers are the sets that a rule's package defines.
var answers = []string{"findings", "missing", "asks", "not_applicable"}

// partialSets checks that the answers of the package are sets, which are defined
// (possibly empty) for any facts.
func partialSets(file string, m *ast.Module) []error {
	r := &metadataReader{file: file, line: m.Package.Location.Row}
	found := false
	for _, rule := range m.Rules {
		name := rule.Head.Name.String()
		if !slices.Contains(answers, name) {
			continue
		}
		found = found || name == "findings"
		if rule.Head.RuleKind() != ast.MultiValue || len(rule.Head.Ref()) != 1 {
			r.line = rule.Location.Row
			r.fault("write \""+name+" contains ... if { ... }\"", "%s is not a set", name)
		}
	}
	if !found && !hasRows(ruleID(strings.TrimPrefix(packageName(m), rulesPackage))) {
		r.fault("write \"findings contains {...} if { ... }\"", "the package has no findings")
	}
	return r.faults
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

// lint rejects "not input...": a missing fact is not a fact that is
// false. Only missing, asks and not_applicable may ask whether a fact exists. A
// comparison, as in not input.x == "y", is allowed: it states
// explicitly that everything but y counts.
func lint(file string, m *ast.Module) []error {
	var faults []error
	for _, rule := range m.Rules {
		if name := rule.Head.Name.String(); name != "findings" && slices.Contains(answers, name) {
			continue
		}
		ast.WalkExprs(rule, func(e *ast.Expr) bool {
			if e.Negated && !e.IsEquality() && !isComparison(e) && mentionsInput(e) {
				faults = append(faults, &Problem{
					File: file, Line: e.Location.Row,
					Reason: "\"not input...\" also holds when the fact is not known",
					Hint:   "write \"== false\", or ask for the fact in asks",
				})
			}
			return false
		})
	}
	return faults
}

// isComparison reports whether an expression compares by ==.
func isComparison(e *ast.Expr) bool {
	return e.IsCall() && e.Operator().Equal(ast.Equal.Ref())
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
