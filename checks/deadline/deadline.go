// Package deadline defines the deadlines of everything that can hang. docs/deadlines.md shows them, which a test
// checks.
package deadline

import "time"

// The deadlines. A shorter one above always wins: no stage outlasts the command.
const (
	// Whole bounds the command on a live machine; Full does with the full probe,
	// Texts where texts or recordings are read. --deadline sets another.
	Whole = 30 * time.Second
	Full  = 2 * time.Minute
	Texts = 10 * time.Minute
	// Ending is the part of the whole that is reserved to end children (Kill) and to judge, rank
	// and write (Judge), which takes 0.1 to 0.3 s.
	Ending = 4 * time.Second
	Judge  = time.Second
	// Least is the shortest duration that --deadline accepts.
	Least = 2 * time.Second

	// Rule bounds the processor time of one rule, which takes milliseconds on the largest machine, and Rules
	// all of them. Compile bounds compiling the rules of a policy, which takes 0.3 s; on a virtual machine
	// whose host is overcommitted, waiting counts as processor time, and 10 s have been seen.
	Rule    = 5 * time.Second
	Rules   = 20 * time.Second
	Compile = 60 * time.Second

	// Check bounds each check that reads files, File one operation on a file: on a
	// healthy machine that takes microseconds, on a dead network share forever.
	Check = 20 * time.Second
	File  = 2 * time.Second
	// Silence bounds one answer of a file that is read as a text. It may lie on a
	// network share, which a normal failover of the server blocks for some seconds.
	Silence = 20 * time.Second

	// Start bounds each step of starting the driver for the probe. Without persistence mode, each GPU is
	// initialized first, which takes a second or two (nvidia-persistenced documentation).
	Start = 20 * time.Second
	// Transfer bounds one wait for a transfer: 64 MiB at 0.05 GB/s take 1.3 s,
	// slower than the slowest staging through the host that was ever reported.
	Transfer = 5 * time.Second
	// Calls is how many times Transfer the process that drives the GPUs may send
	// no message: a transfer waits for its data, for the copy and for the comparison.
	Calls = 3

	// Join bounds the creation of a communicator of NCCL or RCCL, once each rank's driver has started: 0.3 to 3 s
	// on healthy machines with 2 to 8 GPUs. After a run that hung, others get half of it.
	Join = 12 * time.Second

	// Arrive is how long the first rank of probe nccl --nodes waits for the others, which an engine starts within seconds of each
	// other, and Nodes bounds all that the nodes then do.
	Arrive = time.Minute
	Nodes  = 30 * time.Minute

	// NVMLCall bounds one call of the management library: the first one for a GPU
	// that no process holds starts it, which takes two to three seconds on a large
	// one. NVML bounds all of them: 8 GPUs that each start in three seconds.
	NVMLCall = 10 * time.Second
	NVML     = 30 * time.Second

	// Spawn bounds the time until a child's first message: no library is involved,
	// but an overloaded machine takes long.
	Spawn = 30 * time.Second
	// Attempt bounds the calls that a child tries (shared memory, locked memory), each of which
	// takes a second at most. After one that hangs, another child tries the rest; Attempts bounds all.
	Attempt  = 3 * time.Second
	Attempts = 8 * time.Second
	// Direct bounds each call by which a child registers memory of a GPU with a NIC: starting the driver for one GPU
	// takes a second or two. DirectAll bounds all of them.
	Direct    = 10 * time.Second
	DirectAll = 30 * time.Second
	// Kill is how long a child may take to exit once it was killed or its task has
	// ended; one that is blocked in the kernel takes longer and is left behind.
	Kill = 2 * time.Second
	// Signal is how long the command may take to clean up after a signal that ends it.
	Signal = 3 * time.Second

	// Reader is how long to wait for a reader of a FIFO that -o names: a reader that is
	// started together with the command opens the FIFO before the report is ready.
	Reader = 10 * time.Second
)

// Within is the part of whole that remains for a stage, with Ending reserved.
func Within(whole time.Duration) time.Duration { return max(whole-Ending, whole/2) }
