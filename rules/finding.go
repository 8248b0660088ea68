package rules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// pciAddress is the form of a PCI address: domain:bus:device.function. The domain has more than four digits below an
// Intel VMD controller. A GPU of which only the index is known is written "GPU3".
var pciAddress = lazy.New(`^(?:[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|GPU[0-9]+)$`)

// reading is the decoded result of one rule.
type reading struct {
	findings      []Finding
	missing       []Missing
	asks          []Need // What it needs on this machine, beside what its metadata names.
	notApplicable []string
	// faults say what is wrong with the rule itself, without duplicates.
	faults []string
}

// read reads what a rule returned. A malformed entry is a fault and does not affect the others.
func (s *Set) read(rule Rule, a answer) reading {
	var out reading
	if a.failure != "" {
		out.faults = []string{a.failure}
	}
	size := maxSaid
	for _, t := range slices.Concat(slices.Collect(maps.Values(a.sets))...) {
		if size = measure(t.Value, size); size < 0 {
			out.faults = append(out.faults, fmt.Sprintf("%sreturned more than %d MiB", stopped, maxSaid>>20))
			return out
		}
	}
	out.findings = readEach(&out, "finding", a.sets["findings"], func(v any) (Finding, error) { return readFinding(rule, v) })
	out.missing = readEach(&out, "entry of missing", a.sets["missing"], func(v any) (Missing, error) { return readMissing(v, s.own[rule.File]) })
	out.asks = readEach(&out, "entry of asks", a.sets["asks"], func(v any) (Need, error) {
		path, err := readText(v)
		return Need{path}, err
	})
	out.notApplicable = readEach(&out, "entry of not_applicable", a.sets["not_applicable"], readText)
	slices.SortStableFunc(out.missing, func(a, b Missing) int { return cmp.Or(cmp.Compare(a.Fact, b.Fact), cmp.Compare(a.Words, b.Words)) })
	slices.Sort(out.notApplicable)
	slices.Sort(out.faults)
	return out
}

// measure subtracts the size of a value, written out, from what is left, and stops when nothing is. A value may contain
// another many times, so it can be larger than the memory that it takes.
func measure(v ast.Value, left int) int {
	each := func(t *ast.Term) bool {
		left = measure(t.Value, left)
		return left < 0
	}
	left -= 2
	switch v := v.(type) {
	case ast.String:
		left -= len(v)
	case ast.Number:
		left -= len(v)
	case *ast.Array:
		v.Until(each)
	case ast.Set:
		v.Until(each)
	case ast.Object:
		v.Until(func(k, value *ast.Term) bool { return each(k) || each(value) })
	}
	return left
}

// readEach reads the entries of a set that a rule returned, and notes what is wrong with them.
func readEach[T any](out *reading, what string, terms []*ast.Term, read func(v any) (T, error)) []T {
	var all []T
	for _, t := range terms {
		one, err := read(native(t.Value))
		if err == nil {
			all = append(all, one)
		} else if fault := fmt.Sprintf("the rule returned a malformed %s: %s", what, strings.ReplaceAll(err.Error(), "\n", "; ")); !slices.Contains(out.faults, fault) {
			out.faults = append(out.faults, fault)
		}
	}
	return all
}

// readText reads an entry that is a text.
func readText(v any) (string, error) {
	text, _ := v.(string)
	if text == "" {
		return "", errors.New("it is not a string")
	}
	return text, nil
}

// readMissing reads an object with the path of the fact and, if the rule says
// more about it, words. A plain string, which only a user's rule may return, is words.
func readMissing(v any, own bool) (m Missing, err error) {
	if _, isText := v.(string); isText && own {
		m.Words, err = readText(v)
		return m, err
	}
	if err = decode(v, &m); err == nil && m.Fact == "" {
		err = errors.New("fact is missing")
	}
	return m, err
}

// maxSaid bounds what one rule returns: a finding has some kilobytes.
const maxSaid = 16 << 20

// failed begins the fault of a rule that could not be run, stopped that of a rule that was stopped.
const (
	failed  = "the rule failed: "
	stopped = "the rule was stopped: it "
)

// finding is a finding of a rule, as its metadata describes it.
func (r Rule) finding() Finding {
	return Finding{
		Rule: r.ID, Cause: r.Cause, Title: r.Title, Severity: r.Severity, Confidence: r.Confidence, Remedies: r.Remedies,
		Symptom: r.Symptom || r.LastResort || r.Unexplained,
	}
}

// returned is a finding that a rule returned, with what does not appear in a report under these keys.
type returned struct {
	Finding
	ID string `json:"id"`
	// Grade is the grade of the metadata that it has, and About are the values in the text of that.
	Grade string         `json:"grade"`
	About map[string]any `json:"about"`
	// Messages are those of input.logs that show it.
	Messages    []*facts.Message `json:"messages"`
	Nodes       []string         `json:"nodes"`
	AccountsFor []Account        `json:"accounts_for"`
	Order       *int             `json:"order"`
}

// readFinding turns what a rule returned into a finding, or says what is wrong with it. An unknown key is a fault, since
// it may be misspelt.
func readFinding(rule Rule, v any) (Finding, error) {
	var r returned
	if err := decode(v, &r); err != nil {
		return Finding{}, err
	}
	f, of := r.Finding, rule.finding()
	if f.Rule+f.Cause+f.Title != "" || f.Object != nil || f.Explains != nil {
		return Finding{}, errors.New("rule, cause, title, object and explains are not for a rule to say")
	}
	f.Rule, f.Cause, f.Title, f.Symptom = of.Rule, of.Cause, of.Title, of.Symptom
	f.ID, f.Nodes, f.AccountsFor, f.Order = r.ID, r.Nodes, r.AccountsFor, r.Order
	err := f.grade(rule, r.Grade, r.About)
	f.quote(r.Messages)
	slices.Sort(f.Affects) // A list keeps the rule's order, which says nothing.
	return f, cmp.Or(err, r.check(), f.check())
}

// check says what is wrong with the parts of a finding.
func (r *returned) check() error {
	switch {
	case slices.ContainsFunc(r.Messages, func(m *facts.Message) bool { return m == nil || m.ID == "" }):
		return errors.New("messages are not from input.logs")
	case slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Look == "" }):
		return errors.New("a step lacks look")
	case slices.ContainsFunc(r.Candidates, func(c Candidate) bool { return c.Cause == "" || c.For == "" }):
		return errors.New("a candidate lacks cause or for")
	case slices.ContainsFunc(r.Evidence, func(e Evidence) bool { return e.Fact == "" || e.Source == "" || e.Value == nil }):
		return errors.New("evidence lacks fact, value or source")
	}
	return nil
}

// check says what is wrong with a finding.
func (f *Finding) check() error {
	switch {
	case f.Severity.Rank() == len(severities):
		return fmt.Errorf("severity is %q", f.Severity)
	case f.Confidence.Rank() == len(confidences):
		return fmt.Errorf("confidence is %q", f.Confidence)
	case f.Subject == "":
		return errors.New("subject is missing")
	case f.Message == "":
		return errors.New("message is missing")
	case len(f.Evidence) == 0:
		return errors.New("evidence is missing")
	}
	for _, a := range f.Affects {
		if !pciAddress.MatchString(a) {
			return fmt.Errorf("affects holds %q, which is neither a PCI address in lower case nor GPU and a number", a)
		}
	}
	return nil
}

// decode decodes a Rego value, as native gives it, or metadata into a Go value with the same keys. What has another type, and
// what it has no key for, is an error.
func decode(v, into any) error {
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: into, TagName: "json", Squash: true, ErrorUnused: true, DecodeHook: shaped, MatchName: func(key, field string) bool { return key == field },
	})
	if err != nil {
		return err
	}
	return errors.Join(differences(d.Decode(v))...)
}

// differences says where a value differs from what it is decoded into.
func differences(err error) []error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range several.Unwrap() {
			all = append(all, differences(one)...)
		}
		return all
	}
	at, ok := errors.AsType[*mapstructure.DecodeError](err)
	if !ok {
		return []error{err}
	}
	name, reason := cmp.Or(at.Name(), "it"), at.Unwrap()
	if kind, ok := errors.AsType[*mapstructure.UnconvertibleTypeError](err); ok {
		reason = fmt.Errorf("is not a %s", kind.Expected.Kind())
	}
	return []error{fmt.Errorf("%s %w", name, reason)}
}

// shaped writes out the texts that stand for a list or an object, and rejects anything else where one is expected.
func shaped(from, to reflect.Type, v any) (any, error) {
	text, isText := v.(string)
	switch {
	case isText && to == reflect.TypeFor[Need]():
		return []string{text}, nil
	case isText && to == reflect.TypeFor[Grade]():
		return Grade{Text: text}, nil
	case to.Kind() == reflect.Slice && from.Kind() != reflect.Slice:
		return nil, errors.New("is not a list")
	case (to.Kind() == reflect.Struct || to.Kind() == reflect.Map) && from.Kind() != reflect.Map && from != to:
		return nil, errors.New("is not an object")
	}
	return v, nil
}

// placeOf is the place of a message. Facts from elsewhere may lack the name of the text.
func placeOf(m *facts.Message) string {
	if m.Source == "" {
		return "the texts"
	}
	if ownLogSection(m) != "logs" { // Its log is not kept, and has no lines.
		return m.Source
	}
	return fmt.Sprintf("%s:%d", m.Source, m.Line)
}

// Cites reports whether a finding, or a consequence of it, has evidence in a section of the facts.
func (f Finding) Cites(section string) bool {
	return slices.ContainsFunc(f.Explains, func(effect Finding) bool { return effect.Cites(section) }) ||
		slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return strings.HasPrefix(e.Fact, section+".") })
}

// quote adds messages as evidence of the finding, in their order, before its other
// evidence, and sets its place to the first of them.
func (f *Finding) quote(messages []*facts.Message) {
	if len(messages) == 0 {
		return
	}
	slices.SortStableFunc(messages, compareMessages)
	shown := make([]Evidence, 0, len(messages)+len(f.Evidence))
	for _, m := range messages {
		shown = append(shown, Evidence{Fact: fmt.Sprintf("%s.messages[%s]", ownLogSection(m), m.ID), Value: m.Text, Source: placeOf(m)})
	}
	f.Evidence = append(shown, f.Evidence...)
	f.Order = new(messages[0].Order)
}

// native turns a Rego value into what encoding/json would decode it to, except for
// integers, which stay integers. A set becomes a sorted list.
func native(v ast.Value) any {
	document, err := ast.JSONWithOpt(v, ast.JSONOpt{SortSets: true})
	if err != nil {
		return v.String()
	}
	return numbered(document)
}

// numbered has the numbers of a JSON document as integers, or else as floating-point numbers.
func numbered(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, _ := v.Float64()
		return n
	case []any:
		for i, element := range v {
			v[i] = numbered(element)
		}
	case map[string]any:
		for key, member := range v {
			v[key] = numbered(member)
		}
	}
	return v
}

// Compare orders findings: critical and high ones first, the surest before the possible, since what is
// measured explains a failure better than a guess at something worse. The others follow by
// severity, then confidence. Of two alike, what has an effect comes before what has none, then by rule, subject and message.
func (f Finding) Compare(other Finding) int {
	urgent := func(of Finding) int { return max(of.Severity.Rank(), High.Rank()) }
	effects := func(of Finding) int { return slices.Index([]bool{false, true}, of.Inert()) }
	return cmp.Or(
		cmp.Compare(urgent(f), urgent(other)),
		cmp.Compare(f.Confidence.Rank(), other.Confidence.Rank()),
		cmp.Compare(f.Severity.Rank(), other.Severity.Rank()),
		cmp.Compare(effects(f), effects(other)),
		compareOrder(f.Order, other.Order),
		cmp.Compare(f.Scope().File, other.Scope().File),
		cmp.Compare(f.Scope().Line, other.Scope().Line),
		cmp.Compare(f.Rule, other.Rule),
		compareSubjects(f.Subject, other.Subject),
		cmp.Compare(f.Message, other.Message),
	)
}

// compareOrder sorts what a log said first before what it said later, and that
// before what no log said, because the user who gave the log asks about it.
func compareOrder(a, b *int) int {
	last := new(math.MaxInt)
	return cmp.Compare(*cmp.Or(a, last), *cmp.Or(b, last))
}

// compareSubjects orders texts that contain numbers by the size of the numbers. Numbers are hexadecimal, as in a PCI
// address: "0000:3b:00.0" comes before "10000:01:00.0", "node2" before "node10".
func compareSubjects(a, b string) int {
	return cmp.Or(cmp.Compare(padded(a), padded(b)), cmp.Compare(a, b))
}

// padded is a text in which all numbers have the same length and come before other characters.
func padded(subject string) string {
	return subjectNumber.Get().ReplaceAllStringFunc(subject, func(number string) string { return "\x00" + strings.Repeat("0", max(64-len(number), 0)) + number })
}

var subjectNumber = lazy.New(`\b[0-9a-f]+\b|[0-9]+`)
