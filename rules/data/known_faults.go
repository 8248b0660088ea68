package data

// KnownFaults returns the table of faults that versions of libraries have.
var KnownFaults = reader[KnownFaultTable]("known_faults")

// KnownFaultTable are faults that came with a version of a library or went with one.
type KnownFaultTable struct {
	Rows []KnownFault `json:"rows"`
}

// KnownFault is a fault and how it shows. A row without Said and Symptom shows by its
// circumstances alone.
type KnownFault struct {
	ID string `json:"id"`
	// Fault is by what findings name it, where rows of one fault show in different ways;
	// the id otherwise.
	Fault string `json:"fault,omitempty"`
	// Library is whose version counts: "nccl", "rccl" or "rocm".
	Library string `json:"library"`
	// Since is the first version that has it, all before Fixed where it is empty; Fixed
	// the first that does not, none known where it is empty.
	Since string `json:"since,omitempty"`
	Fixed string `json:"fixed,omitempty"`
	// Said are messages of which one must be there (ids of the catalogue), and Lacks a
	// field that it must not have.
	Said  []string `json:"said,omitempty"`
	Lacks string   `json:"lacks,omitempty"`
	// Telltale is true where only versions with the fault say that, so that the version
	// need not be known.
	Telltale bool `json:"telltale,omitempty"`
	// Symptom is what a log must show otherwise: "hang", "stall", "crash", "corrupt" or
	// "fail".
	Symptom string `json:"symptom,omitempty"`
	// When are circumstances that must be known to hold: the library known_faults names
	// them.
	When []string `json:"when,omitempty"`
	// Confidence is "likely" where the message or the circumstances are particular to the
	// fault, "possible" where a mere symptom is.
	Confidence string `json:"confidence"`
	// Severity is high where it is empty.
	Severity string `json:"severity,omitempty"`
	// What is what the version does, to follow "NCCL 2.14.3 ".
	What     string   `json:"what"`
	Remedies []string `json:"remedies"`
	Source   string   `json:"source"`
}
