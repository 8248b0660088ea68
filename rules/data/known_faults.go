package data

// KnownFaults returns the table of known faults in versions of libraries.
var KnownFaults = reader[KnownFaultTable]("known_faults")

// KnownFaultTable holds faults that a version of a library introduced or fixed.
type KnownFaultTable struct {
	Rows []KnownFault `json:"rows"`
}

// KnownFault is a fault and how to recognize it. A row without Said and Symptom is recognized by its
// circumstances only.
type KnownFault struct {
	ID string `json:"id"`
	// Fault is the name that findings use, if several rows describe one fault;
	// otherwise they use the id.
	Fault string `json:"fault,omitempty"`
	// Library is the library whose version counts: "nccl", "rccl" or "rocm".
	Library string `json:"library"`
	// Since is the first version that has it; if empty, all versions before Fixed. Fixed
	// is the first that does not; if empty, none is known.
	Since string `json:"since,omitempty"`
	Fixed string `json:"fixed,omitempty"`
	// Said are messages (ids of the catalogue) of which at least one must occur, and Lacks a
	// field that it must not have.
	Said  []string `json:"said,omitempty"`
	Lacks string   `json:"lacks,omitempty"`
	// Telltale is true if only versions with the fault print that message, so that the version
	// need not be known.
	Telltale bool `json:"telltale,omitempty"`
	// Symptom is what a log must show otherwise: "hang", "stall", "crash", "corrupt" or
	// "fail".
	Symptom string `json:"symptom,omitempty"`
	// When are conditions that must be known to hold: the library known_faults defines
	// them.
	When []string `json:"when,omitempty"`
	// Confidence is "likely" if the message or the conditions are specific to the
	// fault, "possible" if only a symptom is.
	Confidence string `json:"confidence"`
	// Severity is high if empty.
	Severity string `json:"severity,omitempty"`
	// What is what the version does, to follow "NCCL 2.14.3 ".
	What     string   `json:"what"`
	Remedies []string `json:"remedies"`
	// Variable is the one to unset, if that is a remedy.
	Variable string `json:"variable,omitempty"`
	Source   string `json:"source"`
}
