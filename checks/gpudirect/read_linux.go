package gpudirect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

const (
	// readBytes is the size of the file: some requests of a drive's largest size, and nothing that a mount
	// would miss.
	readBytes = 4 << 20
	// leastFree and leastShare are what must be free on a mount before a file is made there: leastFree bytes,
	// and one part in leastShare of its size.
	leastFree  = 1 << 30
	leastShare = 20
	// poisonWord fills the memory of the GPU before the read.
	poisonWord = 0xa5c3e197
)

// nowhere is a folder in which nobody can create a file, not even root: cuFile logs to its working directory.
const nowhere = "/proc"

func newReader() func(Try) attempt.Result {
	runtime.LockOSThread() // The current context is that of a thread.
	return readFile
}

// named calls use with a file without a name open by a name that it has for a moment. cuFile requires that: it takes no
// descriptor of a file that never had one, and opens the file again by what /proc shows as its path (measured with
// cuFile 1.15.1). The name is gone before named returns; the parent removes it if this process does not come to that.
func named(file int, name string, use func(fd int) uint64) (code uint64, err error) {
	if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", file), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return 0, fmt.Errorf("name the file: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Unlink(name)) }()
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_DIRECT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open the file by its name: %w", err)
	}
	return use(fd), nil // It stays open: cuFile uses it.
}

// makeFile makes a file without a name on a mount, and writes the pattern to it past the page cache. It says
// why it does not.
func makeFile(mount string) (fd int, why string) {
	fd, err := unix.Open(mount, unix.O_TMPFILE|unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, fmt.Sprintf("no file without a name can be made on %s: %v", mount, err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return -1, "the free space is not known: statfs: " + err.Error()
	}
	unit := uint64(st.Bsize)
	if free := st.Bavail * unit; free < leastFree || free < st.Blocks*unit/leastShare {
		return -1, fmt.Sprintf("only %d MiB are free on %s, so no file was made there", free>>20, mount)
	}
	memory, err := unix.Mmap(-1, 0, readBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return -1, "mmap: " + err.Error()
	}
	copy(memory, pattern())
	for at := 0; at < readBytes; {
		n, err := unix.Pwrite(fd, memory[at:], int64(at))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return -1, fmt.Sprintf("the file could not be written on %s: %v", mount, err)
		case n <= 0:
			return -1, fmt.Sprintf("the file could not be written on %s", mount)
		default:
			at += n
		}
	}
	return fd, ""
}

// pattern is what the file holds: no two words of it are equal.
func pattern() []byte {
	b := make([]byte, 0, readBytes)
	for i := range uint64(readBytes / 8) {
		b = binary.LittleEndian.AppendUint64(b, (i+1)*0x9e3779b97f4a7c15) // An odd factor.
	}
	return b
}

// readFile has cuFile read a file into the memory of a GPU, and compares it with what was written. The file is
// made once everything else is ready.
func readFile(t Try) attempt.Result {
	if err := unix.Chdir(nowhere); err != nil {
		return attempt.NotKnown("chdir: " + err.Error())
	}
	c := &cufile{}
	if err := load("cuFile", cufileLibrary, &c.calls, &c.libc); err != nil {
		return attempt.NotKnown(err.Error())
	}
	all := startGPUs()
	g, err := all.use(t.GPU, readBytes)
	if err != nil {
		return attempt.NotKnown(err.Error())
	}
	memory, err := newWindow(all.driver, g.memory)
	if err != nil {
		return attempt.NotKnown(err.Error())
	}
	file, why := makeFile(t.Mount)
	if why != "" {
		return attempt.NotKnown(why)
	}
	handle, result := c.prepare(file, filepath.Join(t.Mount, t.Name), g.memory, t.Way)
	if result.Outcome == attempt.OK {
		result = c.readInto(handle, g.memory)
	}
	if result.Outcome != attempt.OK {
		return result
	}
	got, err := memory.content()
	if err != nil {
		return attempt.NotKnown(err.Error())
	}
	result.Bytes = readBytes
	if !bytes.Equal(got, pattern()) {
		result.Outcome, result.Call = attempt.Corrupt, "cuFileRead"
	}
	return result
}

// prepare opens cuFile's driver and registers a file and memory. If the result is OK, handle is that of the file.
func (c *cufile) prepare(file int, name string, memory gpudriver.Pointer, way string) (handle uintptr, result attempt.Result) {
	var properties cufileProperties
	refused := func(call string, code uint64) bool {
		n := int32(uint32(code))
		if n != 0 {
			result = attempt.Result{Outcome: attempt.Refused, Call: call, Errno: codeName(n)}
		}
		return n != 0
	}
	if refused("cuFileDriverOpen", c.calls.DriverOpen()) || refused("cuFileDriverGetProperties", c.calls.GetProperties(&properties)) {
		return 0, result
	}
	if way == wayDirect && properties.control&controlCompat != 0 {
		return 0, attempt.NotKnown("this cuFile allows the compatibility mode although CUFILE_ALLOW_COMPAT_MODE forbids it")
	}
	code, err := named(file, name, func(fd int) uint64 { return c.calls.Register(&handle, &cufileDescription{kind: 1, fd: int32(fd)}) })
	if err != nil {
		return 0, attempt.NotKnown(err.Error())
	}
	if !refused("cuFileHandleRegister", code) && !refused("cuFileBufRegister", c.calls.BufRegister(memory, readBytes, 0)) {
		result.Outcome = attempt.OK
	}
	return handle, result
}

// readInto reads the whole file into the memory of a GPU.
func (c *cufile) readInto(handle uintptr, memory gpudriver.Pointer) attempt.Result {
	switch n := c.calls.Read(handle, memory, readBytes, 0, 0); {
	case n == -1:
		if errno := *c.errno(); errno != 0 {
			return outcome("cuFileRead", syscall.Errno(errno))
		}
		return attempt.NotKnown("cuFileRead failed without an error")
	case n < 0:
		return attempt.Result{Outcome: attempt.Refused, Call: "cuFileRead", Errno: codeName(int32(-n))}
	case n != readBytes:
		return attempt.NotKnown(fmt.Sprintf("cuFileRead read %d of %d bytes", n, readBytes))
	}
	return attempt.Result{Outcome: attempt.OK}
}

// window is pinned host memory through which memory of a GPU is seen.
type window struct {
	drive.Clock
	memory gpudriver.Pointer
	host   []byte
}

// newWindow fills the memory of a GPU with poison.
func newWindow(d gpudriver.Driver, memory gpudriver.Pointer) (w window, err error) {
	w.memory = memory
	if w.host, err = d.AllocHost(readBytes); err != nil {
		return w, err
	}
	if w.Clock, err = drive.NewClock(d); err != nil {
		return w, err
	}
	if err := d.Set32(memory, poisonWord, readBytes/4, w.Stream); err != nil {
		return w, err
	}
	return w, w.wait()
}

// content is what the memory of the GPU holds.
func (w *window) content() ([]byte, error) {
	clear(w.host)
	if err := w.Driver.CopyToHost(w.host, w.memory, w.Stream); err != nil {
		return nil, err
	}
	return w.host, w.wait()
}

// wait waits for the stream. The parent ends this process before if that takes too long.
func (w *window) wait() error { return w.Wait(deadline.DirectAll, nil) }
