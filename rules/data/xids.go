package data

// XIDs returns the table of the NVIDIA driver's error codes in the kernel log.
var XIDs = reader[XIDTable]("xids")

// XIDTable says what each Xid of a GPU and SXid of an NVSwitch means.
type XIDTable struct {
	// Sources are the pages that the table was made from.
	Sources []string `json:"sources"`
	// Actions are by action the remedies that help, the best first.
	Actions map[string][]string `json:"actions"`
	XIDs    []XID               `json:"xids"`
	// SXIDs are by severity the codes of errors that stop the fabric: critical where
	// they always do, high where they may. Those that are noted do not.
	SXIDs map[string][]int `json:"sxids"`
}

// XID is what an Xid means.
type XID struct {
	Code int `json:"code"`
	// Name follows NVIDIA's catalog.
	Name string `json:"name"`
	// Class is "fault" for a fault of the GPU or the path to it, "link" for one of NVLink,
	// "application" for one caused by an error in a program, "secondary" for a consequence
	// of another event, and "note" for what needs no action now.
	Class    string `json:"class"`
	Severity string `json:"severity"`
	// Action is what helps, a key of Actions.
	Action string `json:"action"`
}
