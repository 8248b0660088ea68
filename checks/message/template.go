package message

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Template is what a message means by itself: a finding of a rule. Where that depends on other facts, it names
// conditions; they are stated in Rego, in rules/lib/conditions_*.rego. Reasoning that needs more is a rule's own.
type Template struct {
	// As is the id of a row whose template is this row's as well: both are one statement in
	// two programs' forms, and told as one. It stands alone.
	As string `yaml:"as,omitempty"`
	// Rule is the rule whose finding it is.
	Rule string `yaml:"rule"`
	// ID is the kind of the finding, where the rule's first_of or another rule's explains speaks of it.
	ID string `yaml:"id,omitempty"`
	// Subject is what the finding is about: "nccl", "network", "job". With places, as in Text, there is a finding for
	// each that messages fill in: "{gpu|host}". In brackets, there is one finding, about the one that they fill in or,
	// where these are several, about the words that stand for none: "host".
	Subject Param `yaml:"subject"`
	// Affects are the GPUs that it concerns, with places that all its messages fill:
	// "{gpu}". Without it the finding concerns the whole host.
	Affects string `yaml:"affects,omitempty"`
	// Grade is what the finding says, unless one of Grades holds.
	Grade `yaml:",inline"`
	// Grades are what it says instead in some cases; the first whose
	// conditions hold counts, and what it leaves out is as in Grade.
	Grades []Case `yaml:"grades,omitempty"`
	// When and Unless say when the template is reported at all: each is the id of a row of
	// which there is a message, or the name of a condition.
	When   []string `yaml:"when,omitempty"`
	Unless []string `yaml:"unless,omitempty"`
	// Group joins rows: of those of one group only the one that was said first is reported,
	// and the messages of the others are evidence as well.
	Group string `yaml:"group,omitempty"`
	// All shows every message of the row, or of the group, as evidence, not the first alone.
	All bool `yaml:"all,omitempty"`
	// Also are rows whose messages, too, are evidence, and conditions whose facts are where they hold.
	Also []string `yaml:"also,omitempty"`
}

// Grade is how bad and how sure a finding is, what it says and what cures it.
type Grade struct {
	// Severity and Confidence are the rule's where they are empty.
	Severity   string `yaml:"severity,omitempty"`
	Confidence string `yaml:"confidence,omitempty"`
	// Text is the finding's message. In it {text} stands for the line, {words} for as much of it as fits into a
	// sentence, {who} for the process that said it, {name} for a field of the row, {@name} for a value of such a file,
	// and {name|words} or {@name|words} for words where the line or the facts lack it. Of an event of the kernel log,
	// {gpu} is the address and {the_gpu} the same as "GPU 0000:3b:00.0".
	Text string `yaml:"text,omitempty"`
	// Remedies are the ids of what cures it, the best first; the rule's where empty.
	Remedies []string `yaml:"remedies,omitempty"`
	// Params fill the templates of the remedies. A value may hold places as Text does; one whose place stays empty is
	// left out. One in brackets is a list: of what all messages of the finding fill into each of its elements.
	Params map[string]Param `yaml:"params,omitempty"`
}

// Param is the value of a parameter, or a list.
type Param struct {
	// Value is the value; the first element of a list.
	Value string
	// List is true for a list, and More are its other elements.
	List bool
	More []string
}

// UnmarshalYAML reads a value, or a list of at least one.
func (p *Param) UnmarshalYAML(node *yaml.Node) error {
	if p.List = node.Kind == yaml.SequenceNode; !p.List {
		return node.Decode(&p.Value)
	}
	var all []string
	if err := node.Decode(&all); err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("line %d: the list is empty", node.Line)
	}
	p.Value, p.More = all[0], all[1:]
	return nil
}

// elements are those of a list, or the value alone.
func (p Param) elements() []string { return append([]string{p.Value}, p.More...) }

// Filled are what messages fill into a value, or into the elements of a list, each once.
func (p Param) Filled(messages []*facts.Message, s *Said) []string {
	var all []string
	for _, element := range p.elements() {
		for _, value := range Filled(element, messages, s) {
			if !slices.Contains(all, value) {
				all = append(all, value)
			}
		}
	}
	return all
}

// Case is a grade and what must hold for it.
type Case struct {
	When   []string `yaml:"when,omitempty"`
	Unless []string `yaml:"unless,omitempty"`
	Grade  `yaml:",inline"`
}

// placeholder is a place in Grade.Text that a message or a condition fills.
var placeholder = lazy.New(`\{(@?)([a-z_]+)(\|[^{}]*)?\}`)

// HasPlaces reports whether messages or conditions fill a text.
func HasPlaces(text string) bool { return placeholder.MatchString(text) }

// Filled are what messages fill into a text, each once: of those that have all of its fields, or else of all of them.
func Filled(text string, messages []*facts.Message, s *Said) []string {
	var all []string
	bare := placeholder.ReplaceAllString(text, "{$1$2}")
	for _, t := range []string{bare, text} {
		for _, m := range messages {
			filled := Fill(t, m, s)
			if filled != "" && !strings.Contains(filled, UnknownWords) && !slices.Contains(all, filled) {
				all = append(all, filled)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// UnknownWords stand for a field that the line lacks.
const UnknownWords = "(not told)"

// Said is what a template goes by.
type Said struct {
	// Rows are the ids of the rows of which there are messages.
	Rows map[string]bool
	// Holds are the conditions that hold, and Values the values that are known, by name.
	Holds  map[string]bool
	Values map[string]string
}

// IsCondition reports whether an entry of When or Unless is the name of a condition; ids of rows have hyphens.
func IsCondition(name string) bool { return !strings.Contains(name, "-") }

// allow reports whether all of when hold, and none of unless.
func (s *Said) allow(when, unless []string) bool {
	holds := func(name string) bool { return s.Rows[name] || s.Holds[name] }
	return !slices.ContainsFunc(when, func(name string) bool { return !holds(name) }) && !slices.ContainsFunc(unless, holds)
}

// Applies reports whether its conditions hold.
func (v *Template) Applies(s *Said) bool { return s.allow(v.When, v.Unless) }

// GradeFor is the grade that counts, and the conditions that it and the template rest on.
func (v *Template) GradeFor(s *Said) (g Grade, when []string) {
	for _, c := range v.Grades {
		if !s.allow(c.When, c.Unless) {
			continue
		}
		g = c.Grade
		g.Severity, g.Confidence = cmp.Or(g.Severity, v.Severity), cmp.Or(g.Confidence, v.Confidence)
		g.Text = cmp.Or(g.Text, v.Text)
		if g.Remedies == nil {
			g.Remedies = v.Remedies
		}
		if g.Params == nil {
			g.Params = v.Params
		}
		return g, slices.Concat(v.When, c.When)
	}
	return v.Grade, v.When
}

// maxWords is how much of a line a sentence quotes.
const maxWords = 120

// Fill fills the places of a text for a message.
func Fill(text string, m *facts.Message, s *Said) string {
	return placeholder.Get().ReplaceAllStringFunc(text, func(place string) string {
		part := placeholder.FindStringSubmatch(place)
		name, instead := part[2], part[3]
		switch {
		case part[1] == "@":
			if value, known := s.Values[name]; known {
				return value
			}
		case name == "text":
			return m.Text
		case name == "who":
			return who(m)
		case name == "words":
			return strings.TrimSuffix(strings.ToValidUTF8(m.Text[:min(len(m.Text), maxWords)], ""), ".")
		case m.Fields[name] != "":
			return m.Fields[name]
		}
		if instead != "" {
			return instead[1:]
		}
		return UnknownWords
	})
}

// who names the process that said it, as far as the line tells. It is what logs.who of
// rules/lib/logs.rego returns, which rules' TestWho holds.
func who(m *facts.Message) string {
	switch {
	case m.Rank != nil && m.Host != "":
		return fmt.Sprintf("rank %d on %s", *m.Rank, m.Host)
	case m.Rank != nil:
		return fmt.Sprintf("rank %d", *m.Rank)
	case m.Host != "" && m.Device != nil && m.PID != 0:
		return fmt.Sprintf("%s, GPU %d of process %d", m.Host, *m.Device, m.PID)
	}
	return cmp.Or(m.Host, "the log")
}

// texts are all that may hold places.
func (g *Grade) texts() []string {
	texts := []string{g.Text}
	for _, p := range g.Params {
		texts = append(texts, p.elements()...)
	}
	return texts
}

// Conditions are the names of the conditions that the template asks for, and of values.
func (v *Template) Conditions() (conditions, values []string) {
	names := slices.Concat(v.When, v.Unless, v.Also)
	texts := v.texts()
	for _, c := range v.Grades {
		names = slices.Concat(names, c.When, c.Unless)
		texts = append(texts, c.texts()...)
	}
	for _, text := range texts {
		for _, place := range placeholder.FindAllStringSubmatch(text, -1) {
			if place[1] == "@" {
				values = append(values, place[2])
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return !IsCondition(name) }), values
}

// shareTemplates gives each row whose template is that of another (as) that template, and
// makes one group of the rows that share one.
func shareTemplates(rows []*Row) error {
	byID := make(map[string]*Row, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	shared := map[*Template]string{}
	for _, row := range rows {
		if row.Finding == nil || row.Finding.As == "" {
			continue
		}
		as := byID[row.Finding.As]
		if as == nil || as.Finding == nil || as.Finding.Rule == "" {
			return fmt.Errorf("%s: %s has no finding of its own", row.ID, row.Finding.As)
		}
		if !reflect.DeepEqual(row.Finding, &Template{As: as.ID}) {
			return fmt.Errorf("%s: a finding that uses the one of %s (as) has no other keys", row.ID, as.ID)
		}
		shared[as.Finding] = as.ID
		row.Finding = as.Finding
	}
	for v, id := range shared {
		v.Group = cmp.Or(v.Group, id)
	}
	return nil
}

// Templates are the rows that have a template, by id.
var Templates = sync.OnceValue(func() map[string]*Template {
	all := map[string]*Template{}
	for _, row := range Statements() {
		all[row.ID] = row.Finding
	}
	for _, row := range KernelForms() {
		all[row.ID] = row.Finding
	}
	maps.DeleteFunc(all, func(_ string, v *Template) bool { return v == nil })
	return all
})

// TemplateOf is the template of a row, if it has one: of an event of the kernel log or of a
// message. It reads no more of the catalogue than that takes.
func TemplateOf(id string, event bool) *Template {
	if !event {
		return cmp.Or(StatementOf(id), &Statement{}).Finding
	}
	for _, row := range KernelForms() {
		if row.ID == id {
			return row.Finding
		}
	}
	return nil
}
