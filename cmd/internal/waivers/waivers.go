// Package waivers reads the entries by which a team accepts findings for a time, and finds those that they are for.
package waivers

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Waiver accepts the findings of a rule on a subject until a date.
type Waiver struct {
	// Rule is the id of the rule.
	Rule string `json:"rule"`
	// Subject is a pattern of the findings' subjects, in which * stands for any characters; all subjects if empty.
	Subject string `json:"subject,omitempty"`
	// Path and Object are patterns of the files of jobs, and of what is declared in them, that it is for:
	// "deploy/*.yaml", "Job/train/*"; all if empty.
	Path   string `json:"path,omitempty"`
	Object string `json:"object,omitempty"`
	// Reason says why the findings are accepted.
	Reason string `json:"reason"`
	// Expires is the last day on which it is in force (YYYY-MM-DD, UTC); empty for a remark in the file that
	// is judged, which holds as long as it is there.
	Expires string `json:"expires,omitempty"`
	// Owner is who accepted them.
	Owner string `json:"owner,omitempty"`
	// File and Line say where it is.
	File string `json:"file"`
	Line int    `json:"line"`

	// In is the only object that it is for, where it is a remark in the file that is judged.
	In *rules.Object `json:"-"`
}

// DateForm is the form of a date.
const DateForm = "2006-01-02"

// Place is where the waiver is: "FILE:LINE".
func (w Waiver) Place() string { return fmt.Sprintf("%s:%d", w.File, w.Line) }

// About names what it is for.
func (w Waiver) About() string {
	about := lines.Joined(", ", w.Subject, w.Path, w.Object)
	if about == "" {
		return w.Rule
	}
	return w.Rule + " (" + about + ")"
}

// Terms says how long it is in force, who accepted it, why, and where it is.
func (w Waiver) Terms() string {
	if w.Expires == "" {
		return "accepted by a remark (" + w.Place() + "): " + w.Reason
	}
	said := "waived until " + w.Expires
	if w.Owner != "" {
		said += " by " + w.Owner
	}
	return said + " (" + w.Place() + "): " + w.Reason
}

// expired reports whether it is in force no more.
func (w Waiver) expired(today string) bool { return w.Expires != "" && w.Expires < today }

// covers reports whether it is for a finding.
func (w Waiver) covers(f rules.Finding) bool {
	if w.In != nil && *w.In != f.Scope() {
		return false
	}
	matches := func(pattern, text string) bool { return pattern == "" || Matches(pattern, text) }
	if o := f.Object; o != nil {
		return (w.Rule == f.Rule || w.Rule == f.Cause) && matches(w.Subject, f.Subject) && matches(w.Path, o.File) && matches(w.Object, o.Name)
	}
	return w.Rule == f.Rule && matches(w.Subject, f.Subject) && w.Path == "" && w.Object == ""
}

// Matches reports whether a text has the form of a pattern, in which * stands for any characters.
func Matches(pattern, text string) bool {
	form, err := regexp.Compile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`)
	if err != nil { // It is not UTF-8.
		return pattern == text
	}
	return form.MatchString(text)
}

// Waived is a finding with the waiver that is for it.
type Waived struct {
	Finding rules.Finding `json:"finding"`
	Waiver  Waiver        `json:"waiver"`
	// Counting are the titles of its consequences, which count as findings of their own.
	Counting []string `json:"counting,omitempty"`
}

// Terms are those of the waiver, and what it does not cover.
func (w Waived) Terms() string {
	if len(w.Counting) == 0 {
		return w.Waiver.Terms()
	}
	return strings.TrimSuffix(w.Waiver.Terms(), ".") + ". What it leads to still counts: " + strings.Join(slices.Compact(slices.Clone(w.Counting)), "; ")
}

// Result is what waivers make of findings.
type Result struct {
	// Findings are those that count, in order.
	Findings []rules.Finding
	// Waived are the others, in order.
	Waived []Waived
	// Unused are the waivers that are in force and for no finding of rules that were judged.
	Unused []Waiver
}

// Apply separates the findings that count from those that are waived. A waiver is for a
// finding alone and not for its consequences: those that are not waived themselves count as
// findings of their own. An expired waiver is a finding of its own.
func Apply(verdict rules.Result, all []Waiver, today string) Result {
	a := application{all: all, today: today, used: make([]int, len(all))}
	r := Result{Findings: a.split(verdict.Findings)}
	for i, w := range all {
		switch {
		case w.expired(today):
			r.Findings = append(r.Findings, expiredFinding(w, a.used[i]))
		case a.used[i] == 0 && judged(verdict, w.Rule):
			r.Unused = append(r.Unused, w)
		}
	}
	slices.SortStableFunc(r.Findings, rules.Finding.Compare)
	slices.SortStableFunc(a.waived, func(x, y Waived) int { return x.Finding.Compare(y.Finding) })
	r.Waived = a.waived
	return r
}

// application is one application of waivers.
type application struct {
	all    []Waiver
	today  string
	used   []int // How many findings each waiver is for; of an expired one those that count again.
	waived []Waived
}

// split returns the findings that count, and keeps the others.
func (a *application) split(findings []rules.Finding) []rules.Finding {
	counting := make([]rules.Finding, 0, len(findings))
	for _, f := range findings {
		consequences := a.split(f.Explains)
		w := a.waiverOf(f)
		if w == nil {
			if f.Explains != nil {
				f.Explains = consequences
			}
			counting = append(counting, f)
			continue
		}
		f.Explains = nil
		waived := Waived{Finding: f, Waiver: *w}
		for _, c := range consequences {
			waived.Counting = append(waived.Counting, c.Title)
		}
		a.waived = append(a.waived, waived)
		counting = append(counting, consequences...)
	}
	return counting
}

// waiverOf is the first waiver in force that is for a finding, nil if there is none.
func (a *application) waiverOf(f rules.Finding) *Waiver {
	var first *Waiver
	var expired []int
	for i, w := range a.all {
		switch {
		case !w.covers(f):
		case w.expired(a.today):
			expired = append(expired, i)
		default:
			a.used[i]++
			first = cmp.Or(first, &a.all[i])
		}
	}
	if first == nil {
		for _, i := range expired {
			a.used[i]++
		}
	}
	return first
}

// judged reports whether the rule was judged, so that it would have made a finding.
func judged(v rules.Result, rule string) bool {
	if slices.ContainsFunc(v.Skipped, func(s rules.Skipped) bool { return s.Rule == rule }) {
		return false
	}
	_, notApplicable := v.NotApplicable[rule]
	return notApplicable || slices.Contains(v.Passed, rule) || found(v.Findings, rule)
}

// found reports whether a rule has a finding.
func found(findings []rules.Finding, rule string) bool {
	return slices.ContainsFunc(findings, func(f rules.Finding) bool { return f.Rule == rule || found(f.Explains, rule) })
}

// Expired is the rule of the finding that an expired waiver is, and ExpiredTitle its title.
const (
	Expired      = "waiver-expired"
	ExpiredTitle = "A waiver has expired"
)

// expiredFinding says that a waiver has expired, and of how many findings.
func expiredFinding(w Waiver, findings int) rules.Finding {
	message := fmt.Sprintf("The waiver of %s expired on %s", w.About(), w.Expires)
	look := "Remove the waiver, which is for no finding"
	if findings > 0 {
		message += ": what it waived counts again"
		look = "Fix what it waived, or renew the waiver: set a later date and review the reason"
	} else {
		message += ", and no finding counts because of that"
	}
	return rules.Finding{
		Rule: Expired, Cause: Expired, Title: ExpiredTitle, Severity: rules.Low, Confidence: rules.Confirmed, Subject: w.Place(), Message: message,
		Evidence: []rules.Evidence{{Fact: "waivers.expires", Value: w.Expires, Source: w.Place()}},
		Steps:    []rules.Step{{Look: look}},
		Remedies: []string{},
	}
}

// keys are those of an entry; the first are required.
var keys = []string{"rule", "reason", "expires", "subject", "path", "object", "owner"}

const required = 3

// example is the hint for an entry that lacks something.
const example = `an entry has rule, reason and expires, and may have subject, path, object and owner: {rule: acs-redirect, reason: "fixed in May", expires: 2027-05-31}`

// Load reads a file of waivers, which holds nothing else.
func Load(file string) ([]Waiver, error) {
	raw, err := settings.Read(file)
	if err != nil {
		return nil, err
	}
	root, err := settings.Root(file, raw)
	if root == nil {
		return nil, err
	}
	var list *yaml.Node
	for i, node := range root.Content {
		if i%2 == 0 && (node.Value != settings.WaiversKey || i > 0) {
			return nil, settings.FaultAt(file, node, []string{"a file of waivers has the key " + settings.WaiversKey + " only"}, "unexpected key %q", node.Value)
		}
		list = node
	}
	return Parse(file, list)
}

// Parse reads the list of waivers in a file.
func Parse(file string, list *yaml.Node) ([]Waiver, error) {
	switch {
	case list == nil || list.Kind == yaml.ScalarNode && list.Tag == "!!null":
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, settings.FaultAt(file, list, []string{example}, "%s is not a list", settings.WaiversKey)
	}
	all := make([]Waiver, 0, len(list.Content))
	for _, entry := range list.Content {
		w, err := parseEntry(file, entry)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(all, func(o Waiver) bool { return o.About() == w.About() }); i >= 0 {
			return nil, settings.FaultAt(file, entry, []string{"remove one of them"}, "%s is waived twice; the first is %s", w.About(), all[i].Place())
		}
		all = append(all, w)
	}
	return all, nil
}

// parseEntry reads one waiver.
func parseEntry(file string, entry *yaml.Node) (w Waiver, err error) {
	fields := map[string]string{}
	if err := entry.Decode(&fields); err != nil {
		return w, settings.FaultAt(file, entry, []string{example}, "the waiver is not a set of keys and texts: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(keys, name) {
			return w, settings.FaultAt(file, entry, complaint.Nearest(name, keys, example)[:1], "unknown key %q", name)
		}
		fields[name] = strings.TrimSpace(fields[name])
	}
	for _, key := range keys[:required] {
		if fields[key] == "" {
			return w, settings.FaultAt(file, entry, []string{example}, "the waiver has no %s", key)
		}
	}
	if _, err := time.Parse(DateForm, fields["expires"]); err != nil {
		return w, settings.FaultAt(file, entry, []string{"a date is year, month and day: 2027-05-31"}, "expires: %q is not a date", fields["expires"])
	}
	return Waiver{
		Rule: fields["rule"], Reason: fields["reason"], Expires: fields["expires"], Subject: fields["subject"], Path: fields["path"], Object: fields["object"],
		Owner: fields["owner"], File: file, Line: entry.Line,
	}, nil
}

// CheckRules refuses waivers of rules that do not exist.
func CheckRules(all []Waiver, ids []string) error {
	for _, w := range all {
		if slices.Contains(ids, w.Rule) {
			continue
		}
		hints := complaint.Nearest(w.Rule, ids, "gpudoctor rules list shows the rules")
		return settings.Fault(w.File, w.Line, fmt.Errorf("the waiver names the unknown rule %q", w.Rule), hints...)
	}
	return nil
}
