package data

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Experiments returns the table of what people change to find a fault.
var Experiments = reader("experiments", func(t *ExperimentTable) {
	for i := range t.Words {
		t.Words[i].like = lazy.New(t.Words[i].Like)
	}
})

// ExperimentTable says how runs show what was changed, and how they ended.
type ExperimentTable struct {
	Switches                        []Switch
	Words                           []SwitchWord
	Options                         []SwitchOption
	Ignored, Devices, Hangs, Starts []string
}

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

// SwitchWord is how headings and file names express a setting in words.
type SwitchWord struct {
	Like, Name, Value string

	like *lazy.Regexp
}

// In reports whether a heading, in lower case and with single spaces, expresses the setting.
func (w *SwitchWord) In(heading string) bool { return w.like.MatchString(heading) }
