package data

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Experiments returns the table of what people change to find a fault.
var Experiments = reader("experiments", func(t *ExperimentTable) {
	for _, w := range t.Things {
		t.Words = append(t.Words, w.words()...)
	}
	t.Wrong.like = lazy.New(t.Wrong.Like)
	for i := range t.Words {
		t.Words[i].like = lazy.New(t.Words[i].Like)
	}
	forms := make([]string, len(t.Outcomes))
	for i, o := range t.Outcomes {
		forms[i] = "(?P<" + o.Is + ">" + o.Like + ")"
	}
	t.outcomes = lazy.New("(?i)" + strings.Join(forms, "|"))
})

// ExperimentTable says how runs show what was changed, and how they ended.
type ExperimentTable struct {
	Switches                        []Switch
	Outcomes                        []struct{ Is, Like string }
	Things                          []SwitchThing
	Words                           []SwitchWord
	Wrong                           SwitchWord
	Options                         []SwitchOption
	Ignored, Devices, Hangs, Starts []string
	Places, Tools                   []string

	outcomes *lazy.Regexp
}

// Outcome is how words say that a run ended, and where they stand.
type Outcome struct {
	Is       string
	From, To int
}

// OutcomesIn are the outcomes that a text says, in order.
func (t *ExperimentTable) OutcomesIn(text string) (all []Outcome) {
	names := t.outcomes.Get().SubexpNames()
	for _, at := range t.outcomes.Get().FindAllStringSubmatchIndex(text, maxOutcomes) {
		for i, name := range names {
			if name != "" && at[2*i] >= 0 {
				all = append(all, Outcome{name, at[0], at[1]})
			}
		}
	}
	return all
}

// maxOutcomes bounds how many of them are found in a text.
const maxOutcomes = 64

// Switch is what turns one thing off: the variables that do, and the causes that this points to.
type Switch struct{ Names, Causes []string }

// First is the first of some names that differ together, and reports whether all turn the same thing off.
func (t *ExperimentTable) First(names []string) (string, bool) {
	causes := ""
	for _, name := range names {
		i := slices.IndexFunc(t.Switches, func(s Switch) bool { return slices.Contains(s.Names, name) })
		if i < 0 || causes != "" && causes != t.Switches[i].Causes[0] {
			return "", false
		}
		causes = t.Switches[i].Causes[0]
	}
	return slices.Min(names), true
}

// SwitchOption is a flag of a command that sets what a switch is about.
type SwitchOption struct{ Flag, Name, Value string }

// SwitchThing is something that can be off, the variable or setting that says so, and its values.
type SwitchThing struct{ Thing, Name, Off, On string }

// words are the two ways to speak of it.
func (t SwitchThing) words() []SwitchWord {
	form := strings.NewReplacer("THING", "(?:"+t.Thing+")(?: transport| support| plugin)?", "IS", "(?:is |was |are |were |being |fully )*")
	return []SwitchWord{
		{Name: t.Name, Value: t.Off, Like: form.Replace(`\bTHING IS(?:disabled?|off|not (?:enabled|active|used|on)|(?:turn|switch)ed off)\b|\b(?:no|without|disabl(?:ed?|ing)|(?:turn|switch)(?:ed|ing)? off|clear(?:ed|ing)?|deactivat(?:ed?|ing)) ?(?:the )?THING\b|\b(?:turn|switch)(?:ed|ing)? (?:the )?THING off\b|\bt(?:ake|ook|aking) (?:the )?THING out\b`)},
		{Name: t.Name, Value: t.On, Like: form.Replace(`\bTHING IS(?:enabled?|on|active|running|(?:turn|switch)ed on)\b|\b(?:with|enabl(?:ed?|ing)|(?:turn|switch)(?:ed|ing)? on) (?:the )?THING\b|\b(?:turn|switch)(?:ed|ing)? (?:the )?THING on\b`)},
	}
}

// SwitchWord is how headings and file names express a setting in words.
type SwitchWord struct {
	Like, Name, Value string

	like *lazy.Regexp
}

// In reports whether a heading, in lower case and with single spaces, expresses the setting.
func (w *SwitchWord) In(heading string) bool { return w.like.MatchString(heading) }

// Without is the heading without the words for the setting.
func (w *SwitchWord) Without(heading string) string { return w.like.ReplaceAllString(heading, " ") }
