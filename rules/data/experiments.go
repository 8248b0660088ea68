package data

import "github.com/gpudoctor/gpudoctor/checks/lazy"

// Experiments returns the table of what follows if a run fails and the same run with one
// change works.
var Experiments = reader("experiments", func(t *ExperimentTable) {
	for i := range t.Words {
		t.Words[i].like = lazy.New(t.Words[i].Like)
	}
})

// ExperimentTable says what people change to find a fault, and what is at fault if that
// makes a difference.
type ExperimentTable struct {
	Sources  []string     `json:"sources"`
	Switches []Switch     `json:"switches"`
	Words    []SwitchWord `json:"words"`
	// Options are the flags of programs that switch.
	Options []SwitchOption `json:"options"`
	// Ignored are variables that change nothing about how data moves.
	Ignored []string `json:"ignored"`
	// Devices are the variables that choose GPUs.
	Devices []string `json:"devices"`
	// Hangs are rows of the catalogue that say that something timed out, Starts those
	// that say that it started to serve.
	Hangs  []string `json:"hangs"`
	Starts []string `json:"starts"`
	// Faster is how many times faster one of two runs must be for the other to be slow.
	Faster float64 `json:"faster"`
}

// Switch is a variable, or another setting, that turns something off.
type Switch struct {
	Names []string `json:"names"`
	// Off is a regular expression for the values that turn it off; a variable that is
	// not set has an empty value.
	Off string `json:"off"`
	// When is the network that the row is for: "infiniband" or "roce".
	When string `json:"when,omitempty"`
	// Words name what it turns off.
	Words string `json:"words"`
	// Causes are what is at fault if runs fail without it and work with it, the
	// likeliest first.
	Causes []string `json:"causes"`
	// Remedies are those of that finding.
	Remedies []string `json:"remedies"`
	// Reverse is what is at fault if runs fail with it and work without it;
	// env-misconfig if empty.
	Reverse string `json:"reverse,omitempty"`
	Source  string `json:"source"`
}

// SwitchOption is a flag of a command that sets what a switch is about.
type SwitchOption struct {
	Flag  string `json:"flag"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SwitchWord is how headings and file names express a setting in words.
type SwitchWord struct {
	// Like is a regular expression for words in lower case, separated by single spaces.
	Like string `json:"like"`
	Name string `json:"name"`
	// Value is empty if the words say that it is not set.
	Value string `json:"value"`

	like *lazy.Regexp
}

// In reports whether a heading, in such words, expresses the setting.
func (w *SwitchWord) In(heading string) bool { return w.like.MatchString(heading) }
