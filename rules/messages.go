package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// conditionFiles is the prefix of the files that say which conditions of the templates of
// messages hold, and what those quote from the facts. They are evaluated like rules.
const conditionFiles = "lib/conditions_"

// conditionSets are the sets that they define: names of conditions, pairs of a value's
// name and its text, and pairs of a condition's name and the fact that shows it.
var conditionSets = []string{"holds", "values", "shown"}

// offers are the sets that the package of a rule defines.
func (r Rule) offers() []string {
	if strings.HasPrefix(r.File, conditionFiles) {
		return conditionSets
	}
	return answers
}

// conditionRule is a file of conditions, evaluated like a rule.
func conditionRule(file string) Rule { return Rule{ID: file, File: file} }

// conditionsOf lists the conditions and values that modules define, each with its file.
func conditionsOf(modules map[string]*ast.Module) map[string]string {
	all := map[string]string{}
	for file, m := range modules {
		if !strings.HasPrefix(file, conditionFiles) {
			continue
		}
		for _, rule := range m.Rules {
			if rule.Head.Key == nil {
				continue
			}
			key := rule.Head.Key.Value
			if pair, ok := key.(*ast.Array); ok {
				key = pair.Elem(0).Value
			}
			if name, ok := key.(ast.String); ok {
				all[string(name)] = file
			}
		}
	}
	return all
}

// hasRows reports whether a row of the catalogue gives findings of a rule.
func hasRows(rule string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(message.Templates())), func(v *message.Template) bool { return v.Rule == rule })
}

// entry is the subject of a template: a message of a log, or an event of the kernel log, which is treated like one.
type entry struct {
	*facts.Message
	// event is the kind of the event, and log the source of the kernel log; empty for a message.
	event, log string
}

// byRow are the messages and events in logs, by row, in their order.
type byRow map[string][]entry

func byRowOf(logs *facts.LogFacts, kernel *facts.KernelLogFacts) byRow {
	h := byRow{}
	if logs != nil {
		for i := range logs.Messages {
			m := &logs.Messages[i]
			h[m.ID] = append(h[m.ID], entry{Message: m})
		}
	}
	if kernel != nil {
		for i := range kernel.Events {
			if e := &kernel.Events[i]; e.ID != "" {
				h[e.ID] = append(h[e.ID], entry{spoken(e, i), e.Kind, cmp.Or(kernel.Source, "kernel log")})
			}
		}
	}
	for _, all := range h {
		slices.SortStableFunc(all, entry.compare)
	}
	return h
}

// spoken is an event as a message. Events are in order of time.
func spoken(e *facts.KernelEvent, order int) *facts.Message {
	fields := make(map[string]string, len(e.Fields)+2)
	maps.Copy(fields, e.Fields)
	if e.Address != "" {
		fields["gpu"], fields["the_gpu"] = e.Address, "GPU "+e.Address
	}
	return &facts.Message{ID: e.ID, Text: e.Message, Fields: fields, Host: e.Host, Source: e.Source, Line: e.Line, Order: order}
}

// compare sorts messages, which have an order across all texts, before events.
func (u entry) compare(other entry) int {
	if (u.event == "") != (other.event == "") {
		return cmp.Compare(u.event, other.event)
	}
	return compareMessages(u.Message, other.Message)
}

// evidence returns an event as evidence.
func (u entry) evidence() Evidence {
	source := u.log
	if u.Source != "" {
		source = placeOf(u.Message)
	}
	return Evidence{Fact: fmt.Sprintf("kernel_log.events[%s]", u.event), Value: u.Text, Source: source}
}

func compareMessages(a, b *facts.Message) int {
	return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Text, b.Text))
}

// templates are the templates of the rows that have messages, by row.
func (h byRow) templates() map[string]*message.Template {
	all := map[string]*message.Template{}
	for id, of := range h {
		if v := message.TemplateOf(id, of[0].event != ""); v != nil {
			all[id] = v
		}
	}
	return all
}

// conditionRules are the files of the conditions on which the templates depend that may be reported.
func (s *Set) conditionRules(h byRow) []Rule {
	files := map[string]bool{}
	for _, v := range h.templates() {
		names, values := v.Conditions()
		for _, name := range slices.Concat(names, values) {
			if file, ok := s.conditions[name]; ok { // A test checks that each is defined.
				files[file] = true
			}
		}
	}
	all := make([]Rule, 0, len(files))
	for _, file := range slices.Sorted(maps.Keys(files)) {
		all = append(all, conditionRule(file))
	}
	return all
}

// noteFailure gives each rule that a template with conditions belongs to a fault if the conditions could not be
// evaluated, because a finding may be missing.
func (h byRow) noteFailure(answers map[string]reading, failure string) {
	if failure == "" {
		return
	}
	for _, v := range h.templates() {
		names, values := v.Conditions()
		a, asked := answers[v.Rule]
		if asked && len(names)+len(values) > 0 && !slices.Contains(a.faults, failure) {
			a.faults = append(a.faults, failure)
			answers[v.Rule] = a
		}
	}
}

// voice is what is told as one: the messages of a row of the catalogue, or of a group of rows, about one subject.
type voice struct{ rule, group, subject string }

// voices are the messages with a template of their own that applies, by voice.
func (h byRow) voices(said *situation) map[voice]byRow {
	all := map[voice]byRow{}
	for id, v := range h.templates() {
		if !v.Applies(&said.Said) {
			continue
		}
		for _, u := range h[id] {
			key := voice{rule: v.Rule, group: cmp.Or(v.Group, "row "+id)}
			if !v.Subject.List && message.HasPlaces(v.Subject.Value) {
				key.subject = message.Fill(v.Subject.Value, u.Message, &said.Said)
			}
			if all[key] == nil {
				all[key] = byRow{}
			}
			all[key][id] = append(all[key][id], u)
		}
	}
	return all
}

// rowFindings are the findings of messages that mean something by themselves, by rule: one for each voice, with the
// template of the row that was said first.
func (s *Set) rowFindings(h byRow, said *situation) map[string][]Finding {
	findings := map[string][]Finding{}
	for key, of := range h.voices(said) {
		rule, ok := s.Rule(key.rule)
		if !ok {
			continue
		}
		rows := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[a][0].compare(of[b][0]), cmp.Compare(a, b)) })
		first := of[rows[0]][0]
		v := message.TemplateOf(rows[0], first.event != "")
		grade, when := v.GradeFor(&said.Said)
		f := rule.finding()
		f.ID, f.Message = v.ID, message.Fill(grade.Text, first.Message, &said.Said)
		f.Severity, f.Confidence = cmp.Or(Severity(grade.Severity), f.Severity), cmp.Or(Confidence(grade.Confidence), f.Confidence)
		if grade.Remedies != nil {
			f.Remedies = grade.Remedies
		}
		speakers := f.quoteRows(v, of, h, rows)
		for _, name := range slices.Concat(when, v.Also) {
			if said.Holds[name] {
				f.Evidence = append(f.Evidence, said.shown[name]...)
			}
		}
		f.Subject = subjectOf(v.Subject, first.Message, speakers, &said.Said)
		f.Affects = slices.DeleteFunc(message.Filled(v.Affects, speakers, &said.Said), func(gpu string) bool { return !pciAddress.MatchString(gpu) })
		slices.Sort(f.Affects)
		f.Params = said.params(grade.Params, first.Message, speakers)
		findings[rule.ID] = append(findings[rule.ID], f)
	}
	for _, of := range findings {
		slices.SortStableFunc(of, Finding.Compare)
	}
	return findings
}

// quoteRows adds to a finding the messages and events of its rows that show it, and returns them: the first of each, or
// all of them, and all of the rows that its template names as well.
func (f *Finding) quoteRows(v *message.Template, of, all byRow, rows []string) []*facts.Message {
	var quoted []entry
	for _, row := range rows {
		if v.All {
			quoted = append(quoted, of[row]...)
		} else {
			quoted = append(quoted, of[row][0])
		}
	}
	for _, row := range v.Also {
		if of[row] != nil {
			quoted = append(quoted, of[row]...)
		} else {
			quoted = append(quoted, all[row]...)
		}
	}
	slices.SortStableFunc(quoted, entry.compare)
	var messages, speakers []*facts.Message
	for _, u := range quoted {
		speakers = append(speakers, u.Message)
		if u.event == "" {
			messages = append(messages, u.Message)
		} else {
			f.Evidence = append(f.Evidence, u.evidence())
		}
	}
	f.quote(messages)
	return speakers
}

// params are the values of params that a message fills in, or of a list all messages.
func (c *situation) params(of map[string]message.Param, first *facts.Message, all []*facts.Message) map[string]any {
	params := map[string]any{}
	for name, param := range of {
		if whole, known := c.whole[param.Value]; known && !param.List {
			params[name] = whole
			continue
		}
		by := []*facts.Message{first}
		if param.List {
			by = all
		}
		switch values := param.Filled(by, &c.Said); {
		case len(values) == 0:
		case param.List:
			list := make([]any, 0, len(values))
			for _, v := range values {
				list = append(list, v)
			}
			params[name] = list
		default:
			params[name] = values[0]
		}
	}
	if len(params) == 0 {
		return nil
	}
	return params
}

// subjectOf is what a finding is about.
func subjectOf(subject message.Param, first *facts.Message, all []*facts.Message, said *message.Said) string {
	if subject.List {
		first = &facts.Message{}
		if names := message.Filled(subject.Value, all, said); len(names) == 1 {
			return names[0]
		}
	}
	return message.Fill(subject.Value, first, said)
}

// merged is the combined answer of several files of conditions.
func merged(said map[string]answer, conditions []Rule) answer {
	all := answer{sets: map[string][]*ast.Term{}}
	for _, c := range conditions {
		a := said[c.ID]
		for name, set := range a.sets {
			all.sets[name] = append(all.sets[name], set...)
		}
		all.failure = cmp.Or(all.failure, a.failure)
	}
	return all
}

// situation holds the conditions and values that templates depend on.
type situation struct {
	message.Said
	// shown are the facts that prove conditions, by the condition's name.
	shown map[string][]Evidence
	// whole are the values that are not strings, by their placeholder ("{@all_gpus}"): a param
	// that consists only of such a placeholder takes the value as it is.
	whole map[string]any
}

// conditionsFrom is what templates depend on: the messages, and the answer of the conditions.
func conditionsFrom(h byRow, a answer) *situation {
	s := &situation{Said: message.Said{Rows: map[string]bool{}, Holds: map[string]bool{}, Values: map[string]string{}}, shown: map[string][]Evidence{}, whole: map[string]any{}}
	for id := range h {
		s.Rows[id] = true
	}
	for _, t := range a.sets["holds"] {
		if name, ok := t.Value.(ast.String); ok {
			s.Holds[string(name)] = true
		}
	}
	// Sets are sorted, so of two values of one name the same one is always taken.
	pairs := func(terms []*ast.Term, take func(name string, value any)) {
		for _, t := range terms {
			if pair, ok := native(t.Value).([]any); ok && len(pair) == 2 {
				take(fmt.Sprint(pair[0]), pair[1])
			}
		}
	}
	pairs(a.sets["values"], func(name string, value any) {
		if text, isText := value.(string); !isText {
			s.whole["{@"+name+"}"] = value
		} else if text != "" {
			s.Values[name] = text
		}
	})
	pairs(a.sets["shown"], func(name string, value any) {
		var e Evidence
		if decode(value, &e) == nil {
			s.shown[name] = append(s.shown[name], e)
		}
	})
	return s
}
