package data

// Tables of which Go reads little more than rows.
var (
	// Codes are the codes of the operating system and of libraries.
	Codes = reader[struct{ Errno, Completions, NCCL []Code }]("codes")
	// DriverErrors are the results of the CUDA driver and HIP.
	DriverErrors = reader[struct{ Codes []DriverError }]("driver_errors")
	// Fleet is what should be alike on all nodes of a job, and the variables that each may have its own value of.
	Fleet = reader[struct {
		Traits []FleetTrait
		Own    []string
	}]("fleet")
	// JobNeeds is what a job needs because of how a machine is built.
	JobNeeds = reader[struct{ Needs []JobNeed }]("job_needs")
	// Required is what must be known before a verdict may be "healthy".
	Required = reader[struct{ Required []Requirement }]("required")
	// Thresholds are values between good and bad.
	Thresholds = reader[ThresholdTable]("thresholds")
	// Unknown is, by the path of a fact, the sentence for a rule that lacks it.
	Unknown = reader[struct{ Facts map[string]string }]("unknown")
)

// Code is a code, by number, name and the words that a library prints for it.
type Code struct {
	Number      int
	Name, Words string
}

// DriverError is a result: its name in cuda.h, without CUDA_ERROR_, that of the CUDA runtime, without cudaError, and what
// both print for it.
type DriverError struct {
	Code                 int
	Name, Runtime, Words string
}

// FleetTrait is something by which nodes are compared.
type FleetTrait struct {
	Name, Fact, Expected string
	Counted              bool
	LikeHardware         bool `json:"like_hardware"`
}

// JobNeed are settings that a job needs on some machines.
type JobNeed struct {
	When, For      []string
	Remedy, Reason string
	Environment    map[string]string
}

// Requirement is a fact without which nothing is healthy.
type Requirement struct {
	Fact, Holds, If, Reason string
	Profiles                []string
}

// ThresholdTable holds the values with which Go compares. The YAML file says for each where it comes from.
type ThresholdTable struct {
	StagedFaster         float64 `json:"staged_faster"`
	NodePairShare        float64 `json:"node_pair_share"`
	CollectiveFaster     float64 `json:"collective_faster"`
	CollectiveLeastBytes int64   `json:"collective_least_bytes"`
	ShmConnectionBytes   int64   `json:"shm_connection_bytes"`
	MemlockTooLowBytes   int64   `json:"memlock_too_low_bytes"`
}
