package probe

// The collectives, as Operation.Name names them.
const (
	// AllReduce is the sum over all ranks.
	AllReduce = "all-reduce"
	// SendReceive is a message from each rank to the next one, and from the last to the first.
	SendReceive = "send-receive"
	// AllToAll is a message from each rank to every rank.
	AllToAll = "all-to-all"
)

// The arms, as Arm.Name names them: runs of the same collectives that differ in the environment of the ranks.
const (
	// ArmConfigured is the environment as it is.
	ArmConfigured = "as-configured"
	// ArmInProcess is the same with all ranks in one process.
	ArmInProcess = "in-process"
	// ArmCleaned is without the variables of the library.
	ArmCleaned = "cleaned"
	// ArmWithout is without some of these variables: where ArmCleaned cures, several such runs
	// look for those that are to blame. Arm.Unset has them.
	ArmWithout = "without"
	// ArmP2POff, ArmSHMOff and ArmP2PSHMOff are without a transport, or two.
	ArmP2POff    = "p2p-off"
	ArmSHMOff    = "shm-off"
	ArmP2PSHMOff = "p2p-shm-off"
	// ArmCuMemOff shares memory by cudaIpc instead of cuMem.
	ArmCuMemOff = "cumem-off"
	// ArmNVLSOff is without the multicast of NVSwitches.
	ArmNVLSOff = "nvls-off"
)

// LogSource begins the source of messages in the log of an arm; its name follows.
const LogSource = "probe, arm "

// Collectives is what the probe of NCCL or RCCL found.
type Collectives struct {
	// Mode is how much was requested: quick is the first arm with few sizes.
	Mode Mode `json:"mode"`
	// Outcome is that of the first arm, as the environment is configured, or what stopped
	// the probe before it: Unknown without a library or a GPU.
	Outcome Outcome `json:"outcome"`
	// Reason says in words why the outcome is not OK, Cause as a word for programs.
	Reason string `json:"reason,omitempty"`
	Cause  Cause  `json:"cause,omitempty"`
	// Library is "nccl" or "rccl", Path the file that was loaded, and FoundBy how it was
	// found: a value of Library.FoundBy, "option" (--nccl) or "loader" (by its name).
	Library string `json:"library,omitempty"`
	Path    string `json:"path,omitempty"`
	FoundBy string `json:"found_by,omitempty"`
	// Version is ncclGetVersion, as 2.28.9.
	Version string `json:"version,omitempty"`
	// Candidates are all copies of the library that programs here could load, the one that was taken first.
	Candidates []Candidate `json:"candidates,omitempty"`
	// GPUs are the addresses of the GPUs, by rank. With one, only the start of the library is shown, and no transport.
	GPUs []string `json:"gpus"`
	// Left are GPUs that did not take part, with the reason.
	Left []LeftOut `json:"left,omitempty"`
	// Arms are the runs, in the order in which they were made.
	Arms []Arm `json:"arms"`
	// Untried are arms that were not run because the time ran out.
	Untried []string `json:"untried,omitempty"`
	// Remains is true when a process could not be killed: it is blocked in the kernel.
	Remains bool `json:"remains,omitempty"`
}

// Candidate is a copy of the library.
type Candidate struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	FoundBy string `json:"found_by"`
}

// LeftOut is a GPU that did not take part.
type LeftOut struct {
	GPU    string `json:"gpu"`
	Reason string `json:"reason"`
	Cause  Cause  `json:"cause"`
}

// Arm is a run of the collectives, and its outcome.
type Arm struct {
	// Name is one of the Arm constants. Several arms may be named ArmWithout.
	Name string `json:"name"`
	// Set are the variables that the arm sets, Unset those that it removes: from the
	// environment, or, by an empty value, those that a file of the library sets.
	Set   map[string]string `json:"set,omitempty"`
	Unset []string          `json:"unset,omitempty"`
	// Outcome is OK if every value was correct on every rank, and Slow if its all-reduces are
	// slower than the links allow as well, which only the first arm is judged by. Reason says in
	// words why it is not OK, Cause as a word for programs.
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Cause   Cause   `json:"cause,omitempty"`
	// Stage is the last step that was begun on the rank that failed first, or that is furthest behind: a stage of Rank.
	Stage string `json:"stage,omitempty"`
	// Ranks are the ranks and their outcomes.
	Ranks []Rank `json:"ranks"`
	// Operations are the collectives that were tried.
	Operations []Operation `json:"operations,omitempty"`
	// Transports are those of NCCL's log: "p2p-cumem", "shm", "net", and the number of their
	// channels on all ranks. Network is the network that it chose; NVLS is true if it set up
	// channels for NVSwitch multicast. Absent where the log does not tell.
	Transports []CollectiveTransport `json:"transports,omitempty"`
	Channels   map[string]int        `json:"channels,omitempty"`
	Network    string                `json:"network,omitempty"`
	NVLS       *bool                 `json:"nvls,omitempty"`
	// Warnings are the first warnings of the log, without the process that wrote them.
	Warnings []string `json:"warnings,omitempty"`
	// Messages are those of these warnings that the catalogue of messages knows, where the
	// environment as it is fails: rules read them like those of a job's log.
	Messages []Message `json:"messages,omitempty"`
	// Milliseconds is the time that the run took.
	Milliseconds float64 `json:"ms,omitempty"`
}

// CollectiveTransport is the transport between two ranks.
type CollectiveTransport struct {
	A        int    `json:"a"`
	B        int    `json:"b"`
	Kind     string `json:"kind"`
	Network  string `json:"network,omitempty"`
	Channels int    `json:"channels"`
}

// Rank is a rank of an arm.
type Rank struct {
	Rank int `json:"rank"`
	// GPU is the address of its GPU.
	GPU string `json:"gpu"`
	// Outcome is Unknown with CauseEnded where the rank was ended because of another one.
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Cause   Cause   `json:"cause,omitempty"`
	// Stage is the last step that it began: "load driver", "load library", "ncclGetUniqueId", "ncclCommInitRank", the
	// name of a collective, "ncclCommDestroy", "end".
	Stage string `json:"stage,omitempty"`
	// ErrorCode and ErrorName are those of the library (2, "ncclSystemError") or of the
	// driver, Call the function that returned them. LastError is ncclGetLastError.
	ErrorCode int    `json:"error_code,omitempty"`
	ErrorName string `json:"error_name,omitempty"`
	Call      string `json:"call,omitempty"`
	LastError string `json:"last_error,omitempty"`
	// Signal or ExitCode is how its process ended, if it did so before its work was done.
	Signal   string `json:"signal,omitempty"`
	ExitCode *int   `json:"exit_code,omitempty"`
}

// Operation is a collective of one size.
type Operation struct {
	// Name is one of the collectives.
	Name string `json:"name"`
	// Bytes is the size of each rank's buffer.
	Bytes   int64   `json:"bytes"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Cause   Cause   `json:"cause,omitempty"`
	// Rank is the first at which the outcome was not OK.
	Rank *int `json:"rank,omitempty"`
	// Microseconds is the time of one, on the slowest rank. BusGBps is the bus bandwidth as nccl-tests' PERFORMANCE.md
	// defines it, in 10^9 bytes per second; absent with one rank.
	Microseconds *float64 `json:"us,omitempty"`
	BusGBps      *float64 `json:"bus_gbps,omitempty"`
	// ExpectedGBps is what the links of one GPU could carry, Fraction is BusGBps divided by it,
	// Threshold the least fraction that counts as good, and Basis the reason in words: of the
	// large all-reduces of the first arm. Package checks fills them in.
	ExpectedGBps *float64 `json:"expected_gbps,omitempty"`
	Fraction     *float64 `json:"fraction,omitempty"`
	Threshold    *float64 `json:"threshold,omitempty"`
	Basis        string   `json:"basis,omitempty"`
	// Verified is "gpu" when each GPU compared every word of what it received, "host" when
	// the comparison was made in host memory.
	Verified string `json:"verified,omitempty"`
	// BadBytes counts those that differ (in whole words of 8) on Rank; FirstBad is the offset
	// of the first, and Found what was there: "poison", "zeros", "other".
	BadBytes int64  `json:"bad_bytes,omitempty"`
	FirstBad *int64 `json:"first_bad,omitempty"`
	Found    string `json:"found,omitempty"`
}

// Compared returns the bus bandwidth of the largest all-reduce that both arms ran correctly and timed, and
// its size. ok is false where that is smaller than least bytes, or there is none.
func Compared(one, other *Arm, least int64) (oneGBps, otherGBps float64, bytes int64, ok bool) {
	for i := range one.Operations {
		a := &one.Operations[i]
		if !a.timedSum() || a.Bytes < max(least, bytes+1) {
			continue
		}
		for k := range other.Operations {
			if b := &other.Operations[k]; b.timedSum() && b.Bytes == a.Bytes {
				oneGBps, otherGBps, bytes, ok = *a.BusGBps, *b.BusGBps, a.Bytes, true
			}
		}
	}
	return oneGBps, otherGBps, bytes, ok
}

// timedSum reports whether it is an all-reduce that is correct and has a rate.
func (op *Operation) timedSum() bool {
	return op.Name == AllReduce && op.Outcome.Correct() && op.BusGBps != nil && *op.BusGBps > 0
}
