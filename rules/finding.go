package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// pciAddress is the form of a PCI address: domain:bus:device.function. The
// domain has more than four digits below an Intel VMD controller. A GPU of
// which only the index is known is written "GPU3".
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

// read reads what a rule returned. A malformed entry is a fault and
// does not affect the others.
func (s *Set) read(rule Rule, a answer) reading {
	var out reading
	if a.failure != "" {
		out.faults = []string{a.failure}
	}
	keep := func(fault string) bool {
		if fault != "" && !slices.Contains(out.faults, fault) {
			out.faults = append(out.faults, fault)
		}
		return fault == ""
	}
	size := maxSaid
	for _, t := range slices.Concat(a.findings, a.missing, a.asks, a.notApplicable) {
		if size = measure(t.Value, size); size < 0 {
			keep(fmt.Sprintf("%sreturned more than %d MiB", stopped, maxSaid>>20))
			return out
		}
	}
	for _, t := range a.findings {
		if f, fault := readFinding(rule, t.Value); keep(fault) {
			out.findings = append(out.findings, f)
		}
	}
	for _, t := range a.missing {
		if m, fault := readMissing(t.Value, s.own[rule.ID]); keep(fault) {
			out.missing = append(out.missing, m)
		}
	}
	for _, t := range a.asks {
		r := &entryReader{what: "entry of asks"}
		if path := r.text("it", t.Value); keep(r.reason) {
			out.asks = append(out.asks, Need{path})
		}
	}
	for _, t := range a.notApplicable {
		r := &entryReader{what: "entry of not_applicable"}
		if said := r.text("it", t.Value); keep(r.reason) {
			out.notApplicable = append(out.notApplicable, said)
		}
	}
	slices.SortStableFunc(out.missing, func(a, b Missing) int { return cmp.Or(cmp.Compare(a.Fact, b.Fact), cmp.Compare(a.Words, b.Words)) })
	slices.Sort(out.notApplicable)
	slices.Sort(out.faults)
	return out
}

// readMissing reads an object with the path of the fact and, if the rule says
// more about it, words. A plain string, which only a user's rule may return, is words.
func readMissing(v ast.Value, own bool) (m Missing, fault string) {
	r := &entryReader{what: "entry of missing"}
	if _, isText := v.(ast.String); isText && own {
		return Missing{Words: r.text("it", v)}, r.reason
	}
	r.each("it", v, func(key string, value ast.Value) bool {
		switch key {
		case "fact":
			m.Fact = r.text(key, value)
		case "words":
			m.Words = r.text(key, value)
		default:
			return false
		}
		return true
	})
	if m.Fact == "" {
		r.fault("fact is missing")
	}
	return m, r.reason
}

// maxSaid bounds what one rule returns: a finding has some kilobytes.
const maxSaid = 16 << 20

// failed begins the fault of a rule that could not be run, stopped that of a rule that was
// stopped.
const (
	failed  = "the rule failed: "
	stopped = "the rule was stopped: it "
)

// entryReader reads one entry of a set that a rule returned and keeps the first
// fault of its shape.
type entryReader struct {
	what   string // What the entry is, in words.
	reason string
}

func (r *entryReader) fault(format string, args ...any) {
	if r.reason == "" {
		r.reason = "the rule returned a malformed " + r.what + ": " + fmt.Sprintf(format, args...)
	}
}

// finding is a finding of a rule, as its metadata describes it.
func (r Rule) finding() Finding {
	return Finding{
		Rule: r.ID, Cause: r.Cause, Title: r.Title, Severity: r.Severity, Confidence: r.Confidence, Remedies: r.Remedies,
		Symptom: r.Symptom || r.LastResort || r.Unexplained,
	}
}

// readFinding turns one object that a rule returned into a finding, or says
// what is wrong with it. An unknown key is a fault, since it may be
// misspelt.
func readFinding(rule Rule, v ast.Value) (f Finding, fault string) {
	r := &entryReader{what: "finding"}
	f = rule.finding()
	f.Severity, f.Confidence, f.Remedies = "", "", nil
	var quoted []*facts.Message
	var grade string
	var about ast.Value
	r.each("a finding", v, func(key string, value ast.Value) bool {
		switch key {
		case "id":
			f.ID = r.text(key, value)
		case "messages":
			quoted = r.messages(value)
		case "grade":
			grade = r.text(key, value)
		case "about":
			about = value
		case "subject":
			f.Subject = r.text(key, value)
		case "message":
			f.Message = r.text(key, value)
		case "affects":
			f.Affects = r.texts(key, value)
		case "remedies":
			f.Remedies = r.texts(key, value)
		case "severity":
			f.Severity = Severity(r.text(key, value))
			r.oneOf(key, f.Severity.Rank() < len(severities), value)
		case "confidence":
			f.Confidence = Confidence(r.text(key, value))
			r.oneOf(key, f.Confidence.Rank() < len(confidences), value)
		case "params":
			params, ok := native(value).(map[string]any)
			if !ok {
				r.fault("params is not an object")
			}
			f.Params = params
		case "evidence":
			f.Evidence = r.evidence(value)
		case "accounts_for":
			f.AccountsFor = r.accounts(value)
		case "steps":
			f.Steps = r.steps(value)
		case "candidates":
			f.Candidates = r.candidates(value)
		case "order":
			n, ok := native(value).(int64)
			if !ok {
				r.fault("order is not a whole number")
			}
			order := int(n)
			f.Order = &order
		default:
			return false
		}
		return true
	})
	r.graded(&f, rule, grade, about)
	f.quote(quoted)
	for _, field := range [...]struct{ key, text string }{{"subject", f.Subject}, {"message", f.Message}} {
		if field.text == "" {
			r.fault("%s is missing", field.key)
		}
	}
	if len(f.Evidence) == 0 {
		r.fault("evidence is missing")
	}
	for _, a := range f.Affects {
		if !pciAddress.MatchString(a) {
			r.fault("affects holds %q, which is neither a PCI address in lower case nor GPU and a number", a)
		}
	}
	slices.Sort(f.Affects) // A list keeps the rule's order, which says nothing.
	return f, r.reason
}

// messages reads messages of input.logs.
func (r *entryReader) messages(v ast.Value) []*facts.Message {
	var list []*facts.Message
	text, err := json.Marshal(native(v))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || slices.ContainsFunc(list, func(m *facts.Message) bool { return m == nil || m.ID == "" }) {
		r.fault("messages are not from input.logs")
		return nil
	}
	return list
}

// placeOf is the place of a message. Facts from elsewhere may lack the name of the text.
func placeOf(m *facts.Message) string {
	if m.Source == "" {
		return "the texts"
	}
	if isOfOwnLog(m) { // Its log is not kept, and has no lines.
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
	order := messages[0].Order
	f.Order = &order
}

// each passes every pair of an object to take, which reports whether it knows the
// key.
func (r *entryReader) each(what string, v ast.Value, take func(key string, value ast.Value) bool) {
	object, ok := v.(ast.Object)
	if !ok {
		r.fault("%s is not an object", what)
		return
	}
	object.Foreach(func(k, value *ast.Term) {
		key, _ := k.Value.(ast.String)
		if !take(string(key), value.Value) {
			r.fault("%s has the unknown key %s", what, k)
		}
	})
}

func (r *entryReader) text(key string, v ast.Value) string {
	s, ok := v.(ast.String)
	if !ok || s == "" {
		r.fault("%s is not a string", key)
	}
	return string(s)
}

// texts reads a list or set of strings.
func (r *entryReader) texts(key string, v ast.Value) []string {
	items, ok := native(v).([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		s, isText := item.(string)
		ok = ok && isText
		texts = append(texts, s)
	}
	if !ok {
		r.fault("%s is not a list of strings", key)
	}
	return texts
}

func (r *entryReader) oneOf(key string, known bool, v ast.Value) {
	if !known {
		r.fault("%s is %s", key, v)
	}
}

func (r *entryReader) evidence(v ast.Value) []Evidence {
	var list []Evidence
	one := func(t *ast.Term) {
		var e Evidence
		hasValue := false
		r.each("evidence", t.Value, func(key string, value ast.Value) bool {
			switch key {
			case "fact":
				e.Fact = r.text("evidence's fact", value)
			case "source":
				e.Source = r.text("evidence's source", value)
			case "value":
				e.Value, hasValue = native(value), true
			default:
				return false
			}
			return true
		})
		if e.Fact == "" || e.Source == "" || !hasValue {
			r.fault("evidence lacks fact, value or source")
		}
		list = append(list, e)
	}
	switch items := v.(type) {
	case *ast.Array:
		items.Foreach(one)
	case ast.Set:
		for _, t := range items.Slice() {
			one(t)
		}
	default:
		r.fault("evidence is not a list")
	}
	return list
}

// name reads a string that may be empty: truncated facts may lack it.
func (r *entryReader) name(key string, v ast.Value) string {
	s, ok := v.(ast.String)
	if !ok {
		r.fault("%s is not a string", key)
	}
	return string(s)
}

// records reads a list of objects whose order is significant. take reads the
// value of a key into an object, and reports whether it knows the key.
func records[T any](r *entryReader, list, one string, v ast.Value, take func(object *T, key string, value ast.Value) bool) []T {
	items, ok := v.(*ast.Array)
	if !ok {
		r.fault("%s is not an array", list)
		return nil
	}
	objects := make([]T, items.Len())
	for i := range objects {
		r.each(one, items.Elem(i).Value, func(key string, value ast.Value) bool { return take(&objects[i], key, value) })
	}
	return objects
}

// accounts reads the transfers that a finding accounts for.
func (r *entryReader) accounts(v ast.Value) []Account {
	return records(r, "accounts_for", "accounts_for", v, func(a *Account, key string, value ast.Value) bool {
		switch key {
		case "test":
			a.Test = r.name(key, value)
		case "source":
			a.Source = r.name(key, value)
		case "destination":
			a.Destination = r.name(key, value)
		case "way":
			a.Way = r.name(key, value)
		case "device":
			a.Device = r.name(key, value)
		case "probe":
			a.Probe = value.Compare(ast.Boolean(true)) == 0
		default:
			return false
		}
		return true
	})
}

// steps reads the steps with which a person distinguishes causes.
func (r *entryReader) steps(v ast.Value) []Step {
	steps := records(r, "steps", "a step", v, func(s *Step, key string, value ast.Value) bool {
		switch key {
		case "look":
			s.Look = r.text("a step's look", value)
		case "command":
			s.Command = r.text("a step's command", value)
		default:
			return false
		}
		return true
	})
	if slices.ContainsFunc(steps, func(s Step) bool { return s.Look == "" }) {
		r.fault("a step lacks look")
	}
	return steps
}

// candidates reads a list of causes, the likeliest first, each with the evidence for it.
func (r *entryReader) candidates(v ast.Value) []Candidate {
	candidates := records(r, "candidates", "a candidate", v, func(c *Candidate, key string, value ast.Value) bool {
		switch key {
		case "cause":
			c.Cause = r.text("a candidate's cause", value)
		case "for":
			c.For = r.text("a candidate's for", value)
		default:
			return false
		}
		return true
	})
	if slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Cause == "" || c.For == "" }) {
		r.fault("a candidate lacks cause or for")
	}
	return candidates
}

// native turns a Rego value into what encoding/json would decode it to, except for
// integers, which stay integers. A set becomes a sorted list.
func native(v ast.Value) any {
	switch v := v.(type) {
	case ast.Null:
		return nil
	case ast.Boolean:
		return bool(v)
	case ast.String:
		return string(v)
	case ast.Number:
		if n, ok := v.Int64(); ok {
			return n
		}
		n, _ := v.Float64()
		return n
	case *ast.Array:
		list := make([]any, 0, v.Len())
		v.Foreach(func(t *ast.Term) { list = append(list, native(t.Value)) })
		return list
	case ast.Set:
		list := make([]any, 0, v.Len())
		for _, t := range v.Slice() {
			list = append(list, native(t.Value))
		}
		return list
	case ast.Object:
		object := make(map[string]any, v.Len())
		v.Foreach(func(k, value *ast.Term) {
			key, ok := k.Value.(ast.String)
			if !ok {
				key = ast.String(k.String())
			}
			object[string(key)] = native(value.Value)
		})
		return object
	default:
		return v.String()
	}
}

// Compare orders findings: the worst severity first, then the surest, then what has
// an effect before what has no effect, then by rule, subject and message.
func (f Finding) Compare(other Finding) int {
	return cmp.Or(
		cmp.Compare(f.Severity.Rank(), other.Severity.Rank()),
		cmp.Compare(f.Confidence.Rank(), other.Confidence.Rank()),
		compareInert(f, other),
		compareOrder(f.Order, other.Order),
		cmp.Compare(f.Scope().File, other.Scope().File),
		cmp.Compare(f.Scope().Line, other.Scope().Line),
		cmp.Compare(f.Rule, other.Rule),
		compareSubjects(f.Subject, other.Subject),
		cmp.Compare(f.Message, other.Message),
	)
}

// compareInert sorts a setting without an effect after one with an effect.
func compareInert(a, b Finding) int {
	switch {
	case a.Inert() == b.Inert():
		return 0
	case a.Inert():
		return 1
	}
	return -1
}

// compareOrder sorts what a log said first before what it said later, and that
// before what no log said, because the user who gave the log asks about it.
func compareOrder(a, b *int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}

// compareSubjects orders texts that contain numbers by the size of the numbers. Numbers are
// hexadecimal, as in a PCI address: "0000:3b:00.0" comes before
// "10000:01:00.0", "node2" before "node10".
func compareSubjects(a, b string) int {
	x, y := subjectPart.FindAllString(a, -1), subjectPart.FindAllString(b, -1)
	return cmp.Or(slices.CompareFunc(x, y, comparePart), cmp.Compare(a, b))
}

// subjectPart is a number or the text between two numbers.
var subjectPart = lazy.New(`\b[0-9a-f]+\b|[0-9]+|[^0-9]`)

func comparePart(a, b string) int {
	aNumber, bNumber := isHex(a), isHex(b)
	switch {
	case aNumber && bNumber:
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	case aNumber:
		return -1
	case bNumber:
		return 1
	}
	return cmp.Compare(a, b)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
