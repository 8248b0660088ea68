package data

// DriverErrors returns the table of errors of the CUDA driver, HIP and NVML.
var DriverErrors = reader[DriverErrorTable]("driver_errors")

// DriverErrorTable says what errors of drivers mean and what helps.
type DriverErrorTable struct {
	Sources []string      `json:"sources"`
	Classes []ErrorClass  `json:"classes"`
	Codes   []DriverError `json:"codes"`
	NVML    []ErrorClass  `json:"nvml"`
}

// ErrorClass is what errors are about.
type ErrorClass struct {
	Name string `json:"name"`
	// Words say what happened, as a clause.
	Words string `json:"words"`
	// Causes are ids of causes, the likeliest first; empty if it names none.
	Causes   []string `json:"causes,omitempty"`
	Remedies []string `json:"remedies"`
}

// DriverError is a result of the CUDA driver, or of HIP.
type DriverError struct {
	Code int `json:"code"`
	// Name is that of cuda.h, without CUDA_ERROR_.
	Name string `json:"name"`
	// Runtime is that of the CUDA runtime, without cudaError, and Words are what both
	// print for it (cudaGetErrorString).
	Runtime string `json:"runtime,omitempty"`
	Words   string `json:"words,omitempty"`
	Class   string `json:"class"`
	// Causes are those for a program that prints it, if they differ from the class's.
	Causes []string `json:"causes,omitempty"`
	// Untried is true if a transfer with this error says nothing about the path: the probe
	// could not try.
	Untried bool `json:"untried,omitempty"`
	// InGPU is true for hardware errors that remain when no GPU accesses another.
	InGPU bool `json:"in_gpu,omitempty"`
	// JudgedBy is the rule that judges a driver that reports this.
	JudgedBy string `json:"judged_by,omitempty"`
}
