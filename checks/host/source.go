package host

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
)

// MaxFile is how much of a file is read by default: /proc/self/mountinfo of a busy node is the largest.
const MaxFile = 4 << 20

// ErrSlow is returned when a read does not end within its deadline, as on a dead network mount.
var ErrSlow = errors.New("no answer within the deadline")

// ErrNotRecorded is returned by a recording for what was not read when it was made.
var ErrNotRecorded = errors.New("not recorded")

// FileInfo describes a file.
type FileInfo struct {
	// Mode is its type and permissions, Size its length.
	Mode fs.FileMode `json:"mode"`
	Size int64       `json:"size"`
}

// Source answers for one machine. Paths are absolute. Errors are *fs.PathError, whose operation is "read", "readdir",
// "readlink" or "stat" in every Source. All methods may be called from several goroutines.
type Source interface {
	// ReadFile returns at most limit bytes of a file.
	ReadFile(name string, limit int64) ([]byte, error)
	// ReadDir returns the names in a folder, sorted.
	ReadDir(name string) ([]string, error)
	// ReadLink returns where a symbolic link points.
	ReadLink(name string) (string, error)
	// Stat describes a file, links followed.
	Stat(name string) (FileInfo, error)
	// Ask answers one of the questions below, as JSON.
	Ask(ctx context.Context, question string, by Answerer) (json.RawMessage, error)
	// Recorded is true for a recording.
	Recorded() bool
}

// The questions. Those that end in a colon take an argument after it.
const (
	// AskEnviron is answered with a list of "NAME=value", reduced to the names that checks want (see Wanted).
	AskEnviron = "environ"
	// AskUname is answered with Uname.
	AskUname = "uname"
	// AskIDs is answered with IDs.
	AskIDs = "ids"
	// AskStatfs takes a path and is answered with a Statfs.
	AskStatfs = "statfs:"
	// AskClock is answered with a facts.Clock (adjtimex(2)).
	AskClock = "clock"
	// AskLimits is answered with a map from "memlock", "nofile", "as" to a Limit. An unknown one is left out.
	AskLimits = "limits"
	// AskAccess takes a path and is answered with "rw", "r", "w" or "none".
	AskAccess = "access:"
	// AskLibraryText takes the path of an NCCL or RCCL and is answered with the text in it that states its version.
	AskLibraryText = "library-text:"
	// AskProcess takes a name as the kernel cuts it (15 bytes) and is answered with whether such a process is visible.
	AskProcess = "process:"
	// AskKernelConfig is answered with a KernelConfig. The configuration itself names the host it was built on.
	AskKernelConfig = "kernel-config"
	// AskKernelLog is answered with lines "seconds.micros message" of the kernel log (see KernelLogWanted).
	AskKernelLog = "kernel-log"
	// AskNVML is answered with the document of package nvml.
	AskNVML = "nvml"
	// AskProbe takes a mode and is answered with a probe.Report.
	AskProbe = "probe:"
	// AskCollectives takes a mode and is answered with probe.Collectives.
	AskCollectives = "collectives:"
)

// Uname is the system's names for itself.
type Uname struct {
	Node    string `json:"node"`
	Release string `json:"release"`
	Machine string `json:"machine"`
}

// IDs is the process's user.
type IDs struct {
	UID int `json:"uid"`
}

// KernelConfig is what the running kernel was built with.
type KernelConfig struct {
	// Source is the file that it was read from.
	Source string `json:"source"`
	// Options are those that checks need, each with "y", "m" or "n".
	Options map[string]string `json:"options"`
}

// Statfs is the size of a file system.
type Statfs struct {
	SizeBytes int64 `json:"size_bytes"`
	FreeBytes int64 `json:"free_bytes"`
	ReadOnly  bool  `json:"read_only"`
}

// Limit is a resource limit; -1 is unlimited.
type Limit struct {
	Soft int64 `json:"soft"`
	Hard int64 `json:"hard"`
}
