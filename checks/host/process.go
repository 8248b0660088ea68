package host

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// maxProcesses is how many are looked at; a busy node has a few thousand.
const maxProcesses = 50_000

var errManyProcesses = errors.New("too many processes to look at")

// processSeen reports whether a process of that name is visible in /proc.
func processSeen(name string) (bool, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return false, err
	}
	defer proc.Close() //nolint:errcheck // It was only read.
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return false, err
	}
	seen := 0
	for _, entry := range names {
		if _, err := strconv.Atoi(entry); err != nil {
			continue
		}
		if seen++; seen > maxProcesses {
			return false, errManyProcesses
		}
		// One that has exited meanwhile does not count.
		if comm, err := os.ReadFile("/proc/" + entry + "/comm"); err == nil && string(bytes.TrimSuffix(comm, []byte("\n"))) == name {
			return true, nil
		}
	}
	return false, nil
}
