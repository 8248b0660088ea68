// Package probe describes the outcome of moving data between GPUs, as the facts
// hold it. It holds only types; package engine moves the data.
package probe

import (
	"fmt"
	"slices"
)

// Mode says how much of the probe is run.
type Mode string

// The modes of the probe.
const (
	// Off runs nothing.
	Off Mode = "off"
	// Quick copies between every ordered pair, verified, with bandwidth.
	Quick Mode = "quick"
	// Full adds SM loads and stores, both directions and all pairs at once, handshake, latency, atomics, the
	// host-staged control arm, transfers between processes and host copies from near and far memory.
	Full Mode = "full"
)

// Outcome is the outcome of one transfer, or of the whole probe.
type Outcome string

// The outcomes. Only Unknown is inconclusive.
const (
	// OK means that every byte arrived, at the speed that the path allows if that is known.
	OK Outcome = "ok"
	// Slow means that every byte arrived, below what the path allows.
	Slow Outcome = "slow"
	// Corrupt means that the driver reported success and the owner's memory does not hold the data that was copied.
	Corrupt Outcome = "corrupt"
	// Hang means that it did not end within its deadline.
	Hang Outcome = "hang"
	// Error means that the driver reported an error.
	Error Outcome = "error"
	// Unsupported means that the driver does not offer it for this pair.
	Unsupported Outcome = "unsupported"
	// Unknown means that it could not be tried.
	Unknown Outcome = "unknown"
)

// Failed is true for an outcome that means that something is wrong, beyond being slow.
func (o Outcome) Failed() bool { return o == Corrupt || o == Hang || o == Error }

// Correct is true for an outcome that means that every byte arrived.
func (o Outcome) Correct() bool { return o == OK || o == Slow }

// Cause says why an outcome is not OK if the driver gave no error code of
// its own. Programs depend on it; a Reason is only for people.
type Cause string

// The causes.
const (
	// CauseNoLibrary: the driver's library could not be loaded.
	CauseNoLibrary Cause = "no-library"
	// CauseStatic: this binary is static and cannot load any library.
	CauseStatic Cause = "static"
	// CauseIncompatible: the library lacks functions, or is of a version for
	// which the probe does not know the sizes and numbers.
	CauseIncompatible Cause = "incompatible-library"
	// CauseNoDevice: the driver offers no GPU to this process.
	CauseNoDevice Cause = "no-device"
	// CauseBusy: other processes use the GPU, which the probe does not disturb by default; or they used it
	// while a transfer or a collective was timed, so its rate proves nothing.
	CauseBusy Cause = "busy"
	// CauseNoMemory: the driver reports that memory ran out, mostly because other processes hold it.
	CauseNoMemory Cause = "no-memory"
	// CauseLeftAlone: an earlier process could not make the GPU ready.
	CauseLeftAlone Cause = "left-alone"
	// CauseDevice: one of the two GPUs does not take part.
	CauseDevice Cause = "device"
	// CauseNoAccess: the driver offers no peer access.
	CauseNoAccess Cause = "no-access"
	// CauseExited: the driver ended the process that drives the GPUs, inside one of its calls.
	CauseExited Cause = "exited"
	// CauseKilled: a signal from outside ended it, such as the kernel's when memory runs out.
	CauseKilled Cause = "killed"
	// CauseShortage: it could not get a thread, memory or a file.
	CauseShortage Cause = "shortage"
	// CauseBug: a bug in this program ended it.
	CauseBug Cause = "bug"
	// CauseEnded: it ended for an unknown reason.
	CauseEnded Cause = "ended"
	// CauseStalled: it made no progress in time, outside any call of the driver.
	CauseStalled Cause = "stalled"
	// CauseFlooded: it wrote more than allowed, and was killed.
	CauseFlooded Cause = "flooded"
	// CauseProtocol: messages from the process were lost or garbled.
	CauseProtocol Cause = "protocol"
	// CauseDeadline: the time for the whole probe ran out.
	CauseDeadline Cause = "deadline"
	// CauseGaveUp: too many processes became unusable.
	CauseGaveUp Cause = "gave-up"
	// CauseClock: the driver's timer returned an impossible time.
	CauseClock Cause = "clock"
	// CauseImplausible: the rate is beyond what the links of a GPU carry.
	CauseImplausible Cause = "implausible-rate"
	// CauseJudge: the check itself does not work here: it did not find an error that was planted for it.
	CauseJudge Cause = "check-broken"
	// CauseUnavailable: what the test needs does not exist.
	CauseUnavailable Cause = "unavailable"
)

// The tests, as Transfer.Test names them.
const (
	// TestCopy is the copy engine writing to the peer, one pair at a time.
	TestCopy = "copy"
	// TestCopyRead is the same, driven by the destination.
	TestCopyRead = "copy-read"
	// TestStore is the SMs of the source storing to the destination.
	TestStore = "sm-store"
	// TestLoad is the SMs of the destination loading from the source.
	TestLoad = "sm-load"
	// TestBidirectional is both directions of a pair at once.
	TestBidirectional = "bidirectional"
	// TestAllAtOnce is every GPU writing to every peer at once; GBps is the rate of this pair only.
	TestAllAtOnce = "all-at-once"
	// TestHandshake is a two-way handshake between resident kernels.
	TestHandshake = "handshake"
	// TestLatency is dependent loads from the peer's memory.
	TestLatency = "latency"
	// TestAtomics is native atomics on the peer's memory.
	TestAtomics = "atomics"
	// TestStaged is the control arm: the same data through host memory.
	TestStaged = "host-staged"
	// TestInterprocess is a copy into memory that another process exported.
	TestInterprocess = "between-processes"
	// TestHostToDevice and TestDeviceToHost are copies with pinned host memory of one NUMA node, which is written as
	// "node0" instead of the source's or the destination's address.
	TestHostToDevice = "host-to-device"
	TestDeviceToHost = "device-to-host"
)

// Report is what the probe found.
type Report struct {
	// Mode is how much was requested.
	Mode Mode `json:"mode"`
	// API is the driver's interface through which the GPUs were driven: "cuda" or
	// "hip"; empty if neither library could be loaded.
	API string `json:"api,omitempty"`
	// Outcome is OK when the driver started and every transfer that was
	// tried has a known outcome; otherwise what stopped the probe.
	Outcome Outcome `json:"outcome"`
	// Stage is the last step that was begun when the probe was stopped:
	// "load library", "cuInit" ("hipInit"), "devices", "contexts", "memory", "kernels",
	// "self-check", "peer access", the name of a test, "cleanup".
	Stage string `json:"stage,omitempty"`
	// GPU is the address of the GPU that the stage was working on, if it does one GPU at a time: "contexts", "memory",
	// "kernels", "self-check", "peer access".
	GPU string `json:"gpu,omitempty"`
	// Reason says in words why the outcome is not OK, Cause as a word for programs.
	Reason string `json:"reason,omitempty"`
	Cause  Cause  `json:"cause,omitempty"`
	// ErrorCode and ErrorName are the driver's, if it gave one: 802, "CUDA_ERROR_SYSTEM_NOT_READY". Call is the
	// function that gave it, or in which the process hung or ended: "cuInit".
	ErrorCode int    `json:"error_code,omitempty"`
	ErrorName string `json:"error_name,omitempty"`
	Call      string `json:"call,omitempty"`
	// ExitCode is the one with which the process that drives the GPUs ended before its work did.
	ExitCode *int `json:"exit_code,omitempty"`
	// Signal is the one that ended the child, if one did: "SIGSEGV".
	Signal string `json:"signal,omitempty"`
	// Library is the driver library's path, DriverVersion the newest CUDA
	// version it serves, as 13.0, or the version of HIP, as 6.2.41133.
	Library       string `json:"library,omitempty"`
	DriverVersion string `json:"driver_version,omitempty"`
	// Devices are the GPUs that the driver offers to this process.
	Devices []Device `json:"devices"`
	// Peers are all ordered pairs and what the driver reports about them.
	Peers []Peer `json:"peers"`
	// Transfers are those that were tried, in order of test and pair.
	Transfers []Transfer `json:"transfers"`
	// SMTests says why no kernel could be run, if so: "no PTX compiler".
	SMTests string `json:"sm_tests,omitempty"`
	// Stages are what the probe did, in order, and how long each stage took: a
	// driver that takes long to start shows here.
	Stages []Stage `json:"stages,omitempty"`
	// Left is true when the child could not be killed: it is blocked in the kernel.
	Left bool `json:"left,omitempty"`
}

// StageCheck is the stage in which each GPU runs a kernel and copies, all verified, before any transfer.
const StageCheck = "self-check"

// Checked is true if the probe had that stage, which older versions lack.
func (r *Report) Checked() bool {
	return slices.ContainsFunc(r.Stages, func(s Stage) bool { return s.Name == StageCheck })
}

// Stage is one stage of the probe.
type Stage struct {
	// Name is as in Report.Stage.
	Name string `json:"name"`
	// Milliseconds is the time that it took.
	Milliseconds float64 `json:"ms"`
}

// User is a process other than gpudoctor that uses a GPU.
type User struct {
	// PID is its number, 0 if no process can be seen. Program is its name
	// (/proc/PID/comm), empty if that cannot be read.
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	// UsedBytes is the memory in use if no process is visible.
	UsedBytes int64 `json:"used_bytes,omitempty"`
}

// String names the process as a report does.
func (u User) String() string {
	switch {
	case u.PID == 0:
		return fmt.Sprintf("%d MiB of its memory is in use by a process that is not visible here", u.UsedBytes>>20)
	case u.Program == "":
		return fmt.Sprintf("in use by process %d (not visible here)", u.PID)
	}
	return fmt.Sprintf("in use by process %d (%s)", u.PID, u.Program)
}

// InUse notes that another process used a GPU of the pair, by address, while the transfer was timed: its rate says
// nothing about the path. The rate stays, and so does the outcome.
func (t *Transfer) InUse(address string, by User) {
	t.Outcome, t.Cause, t.User = Unknown, CauseBusy, &by
	t.Reason = fmt.Sprintf("%s: %s while the transfer was timed, so its speed is not judged", address, by)
}

// Device is a GPU as the driver offers it to this process.
type Device struct {
	// Ordinal is the driver's number for it in this process.
	Ordinal int `json:"ordinal"`
	// Address is its PCI address.
	Address string `json:"address"`
	// Name is the model.
	Name string `json:"name"`
	// ComputeCapability is "9.0".
	ComputeCapability string `json:"compute_capability,omitempty"`
	// MemoryBytes is its memory.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Outcome is the outcome of initializing it; Reason says why it failed, Cause and User say so for programs.
	Outcome   Outcome `json:"outcome"`
	Reason    string  `json:"reason,omitempty"`
	Cause     Cause   `json:"cause,omitempty"`
	User      *User   `json:"user,omitempty"`
	ErrorCode int     `json:"error_code,omitempty"`
	ErrorName string  `json:"error_name,omitempty"`
	Call      string  `json:"call,omitempty"`
}

// Peer is what the driver reports about one ordered pair: whether the GPU Source may access the memory of Destination.
type Peer struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// Access is cuDeviceCanAccessPeer.
	Access *bool `json:"access,omitempty"`
}

// Transfer is one transfer and its outcome.
type Transfer struct {
	// Test is one of the Test constants.
	Test string `json:"test"`
	// Source and Destination are PCI addresses, or "node0" for host memory of a NUMA node.
	Source      string `json:"source"`
	Destination string `json:"destination"`
	// Way is how memory was shared between processes: "cudaIpc", "hipIpc".
	Way string `json:"way,omitempty"`
	// Reason says in words why the Outcome is not OK, Cause as a word for programs.
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Cause   Cause   `json:"cause,omitempty"`
	// Bytes is the size of one copy.
	Bytes int64 `json:"bytes,omitempty"`
	// GBps is the rate in 10^9 bytes per second (both directions together for
	// TestBidirectional); nil when it was not measured.
	GBps *float64 `json:"gbps,omitempty"`
	// ExpectedGBps is what the path's links could carry, Fraction is GBps divided by it, Threshold the least fraction
	// that counts as good and Basis the reason in words. Package checks fills them in.
	ExpectedGBps *float64 `json:"expected_gbps,omitempty"`
	Fraction     *float64 `json:"fraction,omitempty"`
	Threshold    *float64 `json:"threshold,omitempty"`
	Basis        string   `json:"basis,omitempty"`
	// Microseconds is the time of one round (TestLatency: one load; TestHandshake: one way there and back).
	Microseconds *float64 `json:"us,omitempty"`
	// Verified is "gpu" when the owner compared every byte, "host" when the owner's copy engine brought it to host
	// memory for comparison, else empty.
	Verified string `json:"verified,omitempty"`
	// BadBytes counts those that differ (in whole words of 8), FirstBad is the offsets of the first and the last byte
	// of them, and Found says what was there instead: "poison" (nothing arrived), "zeros", "foreign" (another
	// transfer's data), "other". "source" means that the copy changed its source, and "overrun" that it changed memory
	// beside its destination.
	BadBytes int64  `json:"bad_bytes,omitempty"`
	FirstBad *int64 `json:"first_bad,omitempty"`
	LastBad  *int64 `json:"last_bad,omitempty"`
	Found    string `json:"found,omitempty"`
	// ErrorCode and ErrorName are the driver's, Call the function that gave them: "cuCtxEnablePeerAccess".
	ErrorCode int    `json:"error_code,omitempty"`
	ErrorName string `json:"error_name,omitempty"`
	Call      string `json:"call,omitempty"`
	// User is who used one of the GPUs while it was timed, if the rate is not judged because of that (CauseBusy).
	User *User `json:"user,omitempty"`
	// Attempts counts how often it was tried, if that is more than once, and
	// Repeats the attempts that gave this outcome.
	Attempts int `json:"attempts,omitempty"`
	Repeats  int `json:"repeats,omitempty"`
}
