package data

// Codes returns the table of codes of the operating system and of libraries.
var Codes = reader[CodeTable]("codes")

// CodeTable says what codes mean.
type CodeTable struct {
	Sources []string `json:"sources"`
	// Errno are the errors of Linux, Completions the statuses of work completions of
	// RDMA, NCCL the results of NCCL.
	Errno       []Code `json:"errno"`
	Completions []Code `json:"completions"`
	NCCL        []Code `json:"nccl"`
}

// Code is a code, by number, name and words.
type Code struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Words are what the library prints for the code.
	Words string `json:"words"`
	// Means are causes; the first entry counts that lists the area of the
	// message, or that lists none.
	Means []Meaning `json:"means,omitempty"`
}

// Meaning is what a code means in some areas, or in all if none is listed.
type Meaning struct {
	Areas  []string `json:"areas,omitempty"`
	Causes []string `json:"causes"`
}
