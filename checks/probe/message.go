package probe

// The probe of collectives has messages like a job's log, and package facts imports this one.

// Message is one statement of a program.
type Message struct {
	// ID is the row of the catalogue: "nccl-shm-extend-failed".
	ID string `json:"id"`
	// Program is the program that prints it: "nccl", "rccl", "pytorch", "cuda", "ofi".
	Program string `json:"program"`
	// Role is the significance of the statement: "cause" states what is wrong, "category" only that something of a kind
	// failed, "consequence" follows from a fault elsewhere, "warning" says that something is wrong but not that
	// anything failed, "setting" states what is or was chosen and is not a complaint.
	Role string `json:"role"`
	// Text is the line without terminal escapes, at most 300 bytes.
	Text string `json:"text"`
	// Fields are the parts that the row's pattern names.
	Fields map[string]string `json:"fields,omitempty"`
	// Place is where in a library it comes from, for a complaint whose form shows that.
	Place *Place `json:"place,omitempty"`
	// Host, PID, Rank and Device identify the process that printed it, if the line says so.
	// Device is the CUDA ordinal inside its process.
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Rank   *int   `json:"rank,omitempty"`
	Device *int   `json:"device,omitempty"`
	// Time is when, as the line states it, in a form that sorts.
	Time string `json:"time,omitempty"`
	// Source is the text's name, Line the line of the first such statement.
	Source string `json:"source"`
	Line   int    `json:"line"`
	// Order is its index among all messages, from 0.
	Order int `json:"order"`
	// Count is how often it occurred, Ranks how many processes printed it.
	Count int `json:"count"`
	Ranks int `json:"ranks"`
	// StepsAfter counts, where what the message says can pass, the lines after the last such statement, up to 8 (9 if the job ended well),
	// in which a process of the same text reports another step of its work.
	StepsAfter int `json:"steps_after,omitempty"`
}

// Complains reports whether a message says that something went wrong.
func (m *Message) Complains() bool { return m.Role != "setting" && m.Role != "warning" }

// Place is where in a library a message comes from, by the form of the line.
type Place struct {
	// Library is "nccl", "ofi", "ucx", "libfabric", "c10d" or "container-toolkit"; empty if only a code is known.
	Library string `json:"library,omitempty"`
	// File is the source file as the line names it ("misc/shmutils.cc"), or the component
	// or kind of error that the library names instead, Function the function.
	File     string `json:"file,omitempty"`
	Function string `json:"function,omitempty"`
	// Area is a name of rules/data/areas.yaml: "shm", "verbs".
	Area string `json:"area,omitempty"`
	// Codes are the errors that it names, at most 4.
	Codes []Code `json:"codes,omitempty"`
	// Variables are those of libraries that it names, at most 4.
	Variables []string `json:"variables,omitempty"`
}

// Code is an error by number and name.
type Code struct {
	// Space is "errno", "cuda" (HIP has the same numbers), "ibverbs" (the status of a work
	// completion) or "nccl" (ncclResult_t).
	Space  string `json:"space"`
	Number int    `json:"number"`
	// Name is that of the header: "ENOSPC", "INVALID_DEVICE" without CUDA_ERROR_.
	Name string `json:"name"`
}
