package data

// Experiments returns the table of what it tells that a run fails and the same with one
// thing changed does not.
var Experiments = reader[ExperimentTable]("experiments")

// ExperimentTable says what people switch to find a fault, and what is at fault where that
// makes a difference.
type ExperimentTable struct {
	Sources  []string     `json:"sources"`
	Switches []Switch     `json:"switches"`
	Words    []SwitchWord `json:"words"`
	// Ignored are variables that change nothing about how data moves.
	Ignored []string `json:"ignored"`
	// Devices are the variables that choose GPUs.
	Devices []string `json:"devices"`
	// Hangs are rows of the catalogue that say something did not end in time, Starts those
	// that say it came as far as to serve.
	Hangs  []string `json:"hangs"`
	Starts []string `json:"starts"`
	// Faster is how many times faster one of two runs must be for the other to be slow.
	Faster float64 `json:"faster"`
}

// Switch is a variable, or another setting, that turns something off.
type Switch struct {
	Names []string `json:"names"`
	// Off is a regular expression of the values with which it is off; a variable that is
	// not set has the empty value.
	Off string `json:"off"`
	// When is the network that the row is for: "infiniband" or "roce".
	When string `json:"when,omitempty"`
	// Words name what it turns off.
	Words string `json:"words"`
	// Causes are what is at fault where runs fail without it and work with it, the
	// likeliest first.
	Causes []string `json:"causes"`
	// Remedies are those of that finding; none stands for those of the causes.
	Remedies []string `json:"remedies,omitempty"`
	// Reverse is what is at fault where runs fail with it and work without it;
	// env-misconfig where nothing is said.
	Reverse string `json:"reverse,omitempty"`
	Source  string `json:"source"`
}

// SwitchWord is how headings and names of files say a setting in words.
type SwitchWord struct {
	// Like is a regular expression, of words in lower case with single blanks between.
	Like string `json:"like"`
	Name string `json:"name"`
	// Value is empty where the words say that it is not set.
	Value string `json:"value"`
}
