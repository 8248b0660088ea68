package message

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// Verdict is what a message means by itself: a finding of a rule. Where other facts
// matter, beyond other messages, the rule says so in Rego instead.
type Verdict struct {
	// Rule is the rule whose finding it is.
	Rule string `yaml:"rule"`
	// Subject is what the finding is about: "nccl", "network", "job".
	Subject string `yaml:"subject"`
	// Severity and Confidence are the rule's where they are empty.
	Severity   string `yaml:"severity,omitempty"`
	Confidence string `yaml:"confidence,omitempty"`
	// Text is the finding's message. {text} stands for the line, {name} for a field of
	// the row, and {name|words} for a field or, where the line lacks it, the words.
	Text string `yaml:"text"`
	// Remedies are the ids of what cures it, the best first; the rule's where empty.
	Remedies []string `yaml:"remedies,omitempty"`
	// Params fill the templates of the remedies.
	Params map[string]string `yaml:"params,omitempty"`
	// Unless are the rows whose messages say more: beside one of them this verdict is
	// not told.
	Unless []string `yaml:"unless,omitempty"`
}

// placeholder is a place in Verdict.Text that a message fills.
var placeholder = regexp.MustCompile(`\{([a-z_]+)(?:\|([^{}]*))?\}`)

// UnknownWords stand for a field that the line lacks.
const UnknownWords = "(not told)"

// Fill returns the text of a verdict for a message.
func (v *Verdict) Fill(m *facts.Message) string {
	return placeholder.ReplaceAllStringFunc(v.Text, func(place string) string {
		part := placeholder.FindStringSubmatch(place)
		if part[1] == "text" {
			return m.Text
		}
		return cmp.Or(m.Fields[part[1]], part[2], UnknownWords)
	})
}

// check says what a machine can find wrong with the verdict of a row.
func (v *Verdict) check(row *Statement) error {
	switch {
	case v.Rule == "" || v.Subject == "" || v.Text == "":
		return errors.New("the verdict has no rule, subject or text")
	case row.Role == "setting":
		return errors.New("the row is a setting, which is no complaint, and has a verdict")
	case strings.ContainsAny(placeholder.ReplaceAllString(v.Text, ""), "{}"):
		return fmt.Errorf("the verdict's text has a brace that is no {field}: %q", v.Text)
	case slices.Contains(v.Unless, row.ID):
		return errors.New("the verdict is not told beside its own message")
	}
	return nil
}

// Verdicts are the rows that have a verdict, by id.
var Verdicts = sync.OnceValue(func() map[string]*Verdict {
	all := map[string]*Verdict{}
	for _, row := range Statements() {
		if row.Verdict != nil {
			all[row.ID] = row.Verdict
		}
	}
	return all
})
