package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// conditionFiles begins the names of the files that say which of the conditions hold that
// verdicts of messages name, and what they quote of the facts. They are asked like rules.
const conditionFiles = "lib/conditions_"

// conditionSets are the sets that they offer: names of conditions, pairs of a value's
// name and its text, and pairs of a condition's name and the fact that shows it.
var conditionSets = []string{"holds", "values", "shown"}

// offers are the sets that the package of a rule offers.
func (r Rule) offers() []string {
	if strings.HasPrefix(r.File, conditionFiles) {
		return conditionSets
	}
	return answers
}

// conditionRule is a file of conditions, to be asked.
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
			switch key := rule.Head.Key.Value.(type) {
			case ast.String:
				all[string(key)] = file
			case *ast.Array:
				if name, ok := key.Elem(0).Value.(ast.String); ok {
					all[string(name)] = file
				}
			}
		}
	}
	return all
}

// toldOf reports whether a row of the catalogue gives findings of a rule.
func toldOf(rule string) bool {
	for _, v := range message.Verdicts() {
		if v.Rule == rule {
			return true
		}
	}
	return false
}

// heard are messages that logs hold, by row, in their order.
type heard map[string][]*facts.Message

func hear(logs *facts.LogFacts) heard {
	h := heard{}
	if logs == nil {
		return h
	}
	for i := range logs.Messages {
		m := &logs.Messages[i]
		h[m.ID] = append(h[m.ID], m)
	}
	for _, messages := range h {
		slices.SortFunc(messages, compareMessages)
	}
	return h
}

func compareMessages(a, b *facts.Message) int {
	return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Text, b.Text))
}

// verdicts are those of the rows of which there are messages, by row.
func (h heard) verdicts() map[string]*message.Verdict {
	all := map[string]*message.Verdict{}
	for id := range h {
		if v := message.Verdicts()[id]; v != nil {
			all[id] = v
		}
	}
	return all
}

// conditionRules are the files of the conditions on which verdicts depend that may be
// told.
func (s *Set) conditionRules(h heard) []Rule {
	files := map[string]bool{}
	for _, v := range h.verdicts() {
		names, values := v.Conditions()
		for _, name := range slices.Concat(names, values) {
			if file, ok := s.conditions[name]; ok { // A test holds that each is defined.
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

// addTold adds to what rules say the findings of messages that mean something by
// themselves. Where the conditions could not be asked, each rule that a verdict with
// conditions is of has a fault: what was not told says nothing.
func (s *Set) addTold(answers map[string]reading, h heard, known answer) {
	for id, findings := range s.told(h, saidBy(h, known)) {
		if a, asked := answers[id]; asked {
			a.findings = append(a.findings, findings...)
			answers[id] = a
		}
	}
	if known.failure == "" {
		return
	}
	for _, v := range h.verdicts() {
		names, values := v.Conditions()
		a, asked := answers[v.Rule]
		if asked && len(names)+len(values) > 0 && !slices.Contains(a.faults, known.failure) {
			a.faults = append(a.faults, known.failure)
			answers[v.Rule] = a
		}
	}
}

// told are the findings of the messages that mean something by themselves, by rule: one
// for each row of the catalogue or group of rows, of the first message of its form.
func (s *Set) told(h heard, said *circumstances) map[string][]Finding {
	type voice struct{ rule, group string }
	all := map[voice][]string{} // The rows that are told as one.
	for id, v := range h.verdicts() {
		if v.Told(&said.Said) {
			key := voice{v.Rule, cmp.Or(v.Group, "row "+id)}
			all[key] = append(all[key], id)
		}
	}
	findings := map[string][]Finding{}
	for key, rows := range all {
		rule, ok := s.Rule(key.rule)
		if !ok {
			continue
		}
		slices.SortFunc(rows, func(a, b string) int { return cmp.Or(compareMessages(h[a][0], h[b][0]), cmp.Compare(a, b)) })
		findings[rule.ID] = append(findings[rule.ID], h.finding(rule, rows, said))
	}
	for _, of := range findings {
		slices.SortFunc(of, Finding.Compare)
	}
	return findings
}

// finding is the finding of rows that are told as one, by the verdict of the first.
func (h heard) finding(rule Rule, rows []string, said *circumstances) Finding {
	first := h[rows[0]][0]
	v := message.Verdicts()[rows[0]]
	grade, when := v.GradeFor(&said.Said)
	f := rule.finding()
	f.ID, f.Subject, f.Message = v.ID, v.Subject, message.Fill(grade.Text, first, &said.Said)
	f.Severity, f.Confidence = cmp.Or(Severity(grade.Severity), f.Severity), cmp.Or(Confidence(grade.Confidence), f.Confidence)
	var quoted []*facts.Message
	for i, row := range slices.Concat(rows, v.Also) {
		messages := h[row]
		if i < len(rows) && !v.All {
			messages = messages[:1]
		}
		quoted = append(quoted, messages...)
	}
	for _, name := range slices.Concat(when, said.holding(v.Also)) {
		f.Evidence = append(f.Evidence, said.shown[name]...)
	}
	f.quote(quoted)
	if grade.Remedies != nil {
		f.Remedies = grade.Remedies
	}
	for name, param := range grade.Params {
		if whole, known := said.whole[param.Value]; known && !param.List {
			f.param(name, whole)
			continue
		}
		speakers := []*facts.Message{first}
		if param.List {
			speakers = quoted
		}
		switch values := paramValues(param.Value, speakers, said); {
		case len(values) == 0:
		case param.List:
			f.param(name, values)
		default:
			f.param(name, values[0])
		}
	}
	return f
}

// param gives a finding a param.
func (f *Finding) param(name string, value any) {
	if f.Params == nil {
		f.Params = map[string]any{}
	}
	f.Params[name] = value
}

// paramValues are what messages fill into the value of a parameter, each once.
func paramValues(value string, messages []*facts.Message, said *circumstances) []any {
	var values []any
	for _, m := range messages {
		filled := message.Fill(value, m, &said.Said)
		if filled != message.UnknownWords && filled != "" && !slices.Contains(values, any(filled)) {
			values = append(values, filled)
		}
	}
	return values
}

// together is the answer of several files of conditions.
func together(said map[string]answer, conditions []Rule) answer {
	var all answer
	for _, c := range conditions {
		a := said[c.ID]
		all.holds, all.values, all.shown = append(all.holds, a.holds...), append(all.values, a.values...), append(all.shown, a.shown...)
		all.failure = cmp.Or(all.failure, a.failure)
	}
	return all
}

// circumstances are what verdicts go by.
type circumstances struct {
	message.Said
	// shown are the facts that show conditions, by the condition's name.
	shown map[string][]Evidence
	// whole are the values that are no texts, by their place ("{@all_gpus}"): a param
	// that is such a place alone takes the value as it is.
	whole map[string]any
}

// holding are those of the names that are conditions which hold.
func (c *circumstances) holding(names []string) []string {
	var all []string
	for _, name := range names {
		if message.IsCondition(name) && c.Holds[name] {
			all = append(all, name)
		}
	}
	return all
}

// saidBy is what verdicts go by: the messages, and the answer of the conditions.
func saidBy(h heard, a answer) *circumstances {
	s := &circumstances{Said: message.Said{Rows: map[string]bool{}, Holds: map[string]bool{}, Values: map[string]string{}}, shown: map[string][]Evidence{}, whole: map[string]any{}}
	for id := range h {
		s.Rows[id] = true
	}
	for _, t := range a.holds {
		if name, ok := t.Value.(ast.String); ok {
			s.Holds[string(name)] = true
		}
	}
	// Sets have an order, so that of two values of one name the same one is taken always.
	pairs := func(terms []*ast.Term, take func(name string, value ast.Value)) {
		for _, t := range terms {
			if pair, ok := t.Value.(*ast.Array); ok && pair.Len() == 2 {
				if name, ok := pair.Elem(0).Value.(ast.String); ok {
					take(string(name), pair.Elem(1).Value)
				}
			}
		}
	}
	pairs(a.values, func(name string, value ast.Value) {
		if text, ok := value.(ast.String); ok {
			if text != "" {
				s.Values[name] = string(text)
			}
		} else {
			s.whole["{@"+name+"}"] = native(value)
		}
	})
	pairs(a.shown, func(name string, value ast.Value) {
		r := &entryReader{}
		if list := r.evidence(ast.NewArray(ast.NewTerm(value))); r.reason == "" {
			s.shown[name] = append(s.shown[name], list...)
		}
	})
	return s
}
