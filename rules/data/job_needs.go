package data

// JobNeeds returns the table of what a job needs because of how a machine is built.
var JobNeeds = reader[JobNeedTable]("job_needs")

// JobNeedTable holds the settings of a job on a healthy machine.
type JobNeedTable struct {
	Sources []string  `json:"sources"`
	Needs   []JobNeed `json:"needs"`
}

// JobNeed are settings that a job needs on some machines.
type JobNeed struct {
	// When are the conditions, all of which must hold: names of those of remedies/plan.
	When []string `json:"when"`
	// For are the targets that need it; empty for all that can set it.
	For []string `json:"for,omitempty"`
	// Remedy is the remedy whose flags of a container it needs, or Environment has the
	// variables.
	Remedy      string            `json:"remedy,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	// Reason says why, in one or two sentences.
	Reason string `json:"reason"`
}
