package facts

// Attempts are calls that a child of gpudoctor really makes, to find out what the kernel allows
// here (package checks/internal/attempt). One that is nil has an unknown outcome.
type Attempts struct {
	// SharedMemory is a file in /dev/shm: it is created without a name, gets its space by fallocate(2), and is mapped
	// and written, as NCCL does it (ncclOsShmOpen in src/os/linux.cc). Bytes is the size of one connection of NCCL.
	SharedMemory *Attempt `json:"shared_memory,omitempty"`
	// LockedMemory is mlock2(2) with MLOCK_ONFAULT, which counts all of the memory against the limit and allocates
	// none. Bytes is the largest that was locked, up to 64 MiB, or the size that was refused.
	LockedMemory *Attempt `json:"locked_memory,omitempty"`
}

// Attempt is the outcome of one of them.
type Attempt struct {
	// Outcome is "ok" or "refused".
	Outcome string `json:"outcome" jsonschema:"enum=ok,enum=refused"`
	// Call is the system call that was refused, and Errno the name of its error: "ENOSPC". It is
	// "SIGSYS" if a seccomp filter ended the child for that call.
	Call  string `json:"call,omitempty"`
	Errno string `json:"errno,omitempty"`
	// Bytes is the size, of memory.
	Bytes int64 `json:"bytes,omitempty"`
}
