package child

import (
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// newRecord makes the memory of a child's record, or returns nil: then less is known about the child's end.
func newRecord() *os.File {
	fd, err := unix.MemfdCreate("gpudoctor-child", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "record")
	if unix.Ftruncate(fd, recordBytes+reportBytes) != nil {
		shut(f)
		return nil
	}
	// A child can neither grow nor shrink it. Without seals, the parent reads the same number of bytes.
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	return f
}

// openRecord uses the memory that the parent provided as the ledger of this child, and has the Go runtime write its crash
// report after it.
func openRecord(fd int) {
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Size != recordBytes+reportBytes {
		return
	}
	unix.CloseOnExec(fd)
	page, err := unix.Mmap(fd, 0, recordBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return
	}
	ledger.Lock()
	copy(page[namesAt:], ledger.page[namesAt:]) // What was named at the start.
	ledger.page = page
	ledger.Unlock()
	f := os.NewFile(uintptr(fd), "record")
	defer shut(f) // The runtime keeps a descriptor of its own.
	if _, err := f.Seek(recordBytes, 0); err == nil {
		_ = debug.SetCrashOutput(f, debug.CrashOptions{})
	}
}
