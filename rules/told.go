package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// told are the findings of the messages that mean something by themselves, by rule:
// one for each row of the catalogue, of the first message of its form.
func (s *Set) told(logs *facts.LogFacts) map[string][]Finding {
	if logs == nil || len(logs.Messages) == 0 {
		return nil
	}
	first := map[string]*facts.Message{}
	for i := range logs.Messages {
		m := &logs.Messages[i]
		if f := first[m.ID]; f == nil || cmp.Or(cmp.Compare(m.Order, f.Order), cmp.Compare(m.Text, f.Text)) < 0 {
			first[m.ID] = m
		}
	}
	said := func(id string) bool { return first[id] != nil }
	findings := map[string][]Finding{}
	for _, id := range slices.Sorted(maps.Keys(first)) {
		m, v := first[id], message.Verdicts()[id]
		if v == nil || slices.ContainsFunc(v.Unless, said) {
			continue
		}
		if rule, ok := s.Rule(v.Rule); ok {
			findings[rule.ID] = append(findings[rule.ID], toldBy(m, v, rule))
		}
	}
	return findings
}

// toldBy is the finding of a message by its row's verdict.
func toldBy(m *facts.Message, v *message.Verdict, rule Rule) Finding {
	order := m.Order
	f := rule.finding()
	f.Subject, f.Message, f.Order = v.Subject, v.Fill(m), &order
	f.Severity, f.Confidence = cmp.Or(Severity(v.Severity), f.Severity), cmp.Or(Confidence(v.Confidence), f.Confidence)
	f.Evidence = []Evidence{{Fact: fmt.Sprintf("logs.messages[%s]", m.ID), Value: m.Text, Source: fmt.Sprintf("%s:%d", m.Source, m.Line)}}
	if len(v.Remedies) > 0 {
		f.Remedies = v.Remedies
	}
	if len(v.Params) > 0 {
		f.Params = make(map[string]any, len(v.Params))
		for name, value := range v.Params {
			f.Params[name] = value
		}
	}
	return f
}
