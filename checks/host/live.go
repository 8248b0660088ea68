package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
)

const (
	// fileDeadline bounds one operation on a file. The slowest, a read of config space, takes well under a millisecond.
	fileDeadline = deadline.File
	maxNames     = 200_000
	// pageSize holds any file of sysfs, and most of procfs.
	pageSize = 4 << 10
)

var errTooManyNames = fmt.Errorf("more than %d names", maxNames)

type live struct {
	files *pool
	asked asked
}

// newLive returns the machine that this process runs on. Only regular files are read, so none can block.
func newLive() Source { return &live{files: newPool(fileDeadline)} }

func (l *live) ReadFile(name string, limit int64) ([]byte, error) {
	return run(l.files, read.String(), name, func() ([]byte, error) { return readRegular(name, limit) })
}

// readRegular returns at most limit bytes of a regular file. Those of procfs do not know their size.
func readRegular(name string, limit int64) ([]byte, error) {
	f, err := open(name, regular)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	var b bytes.Buffer
	b.Grow(pageSize)
	_, err = b.ReadFrom(io.LimitReader(f, limit))
	return b.Bytes(), err
}

// open opens a file of a kind, and no other: opening a device can initialize it, and a FIFO waits for a writer.
func open(name string, kind func(fs.FileMode) error) (*os.File, error) {
	info, err := os.Stat(name)
	if err == nil {
		err = kind(info.Mode())
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = kind(info.Mode()) // It may have changed, or a device is mounted over it.
	}
	if err != nil {
		_ = f.Close() // It was not even read.
		return nil, err
	}
	return f, nil
}

func regular(mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errIsDir
	}
	return errIrregular
}

func folder(mode fs.FileMode) error {
	if mode.IsDir() {
		return nil
	}
	return errNotDir
}

func (l *live) ReadDir(name string) ([]string, error) {
	return run(l.files, list.String(), name, func() ([]string, error) {
		f, err := open(name, folder)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		names, err := f.Readdirnames(maxNames + 1)
		switch {
		case err != nil && !errors.Is(err, io.EOF): // EOF: an empty folder.
			return nil, err
		case len(names) > maxNames:
			return nil, errTooManyNames
		}
		slices.Sort(names)
		return names, nil
	})
}

func (l *live) ReadLink(name string) (string, error) {
	return run(l.files, link.String(), name, func() (string, error) { return os.Readlink(name) })
}

// Stat describes a file, links followed.
func (l *live) Stat(name string) (FileInfo, error) {
	return run(l.files, stat.String(), name, func() (FileInfo, error) {
		info, err := os.Stat(name)
		if err != nil {
			return FileInfo{}, err
		}
		return FileInfo{Mode: info.Mode(), Size: info.Size()}, nil
	})
}

// Ask answers a question. The machine is asked each question once.
func (l *live) Ask(ctx context.Context, question string, by Answerer) (json.RawMessage, error) {
	if by == nil {
		by = func(context.Context) (any, error) {
			name, argument, takes := strings.Cut(question, ":")
			if takes {
				name += ":"
			}
			return l.answer(name, argument)
		}
	}
	return l.asked.ask(ctx, question, by)
}

func (l *live) answer(name, argument string) (any, error) {
	switch name {
	case AskEnviron:
		return WantedEnviron(os.Environ()), nil
	case AskIDs:
		return IDs{UID: os.Geteuid()}, nil
	case AskUname:
		return uname()
	case AskClock:
		return clock()
	case AskLimits:
		return l.limits()
	case AskKernelLog:
		return readKernelLog()
	case AskStatfs:
		return run(l.files, "statfs", argument, func() (Statfs, error) { return statfs(argument) })
	case AskLibraryText:
		return run(l.files, read.String(), argument, func() (string, error) { return libraryText(argument) })
	case AskProcess:
		return run(l.files, read.String(), "/proc", func() (bool, error) { return processSeen(argument) })
	case AskKernelConfig:
		names, err := uname()
		if err != nil {
			return nil, err
		}
		return run(l.files, read.String(), "kernel configuration", func() (KernelConfig, error) { return kernelConfig(names.Release) })
	case AskAccess:
		return run(l.files, "access", argument, func() (string, error) { return access(argument) })
	}
	return nil, fmt.Errorf("%s: %w", name, errors.ErrUnsupported)
}

func (l *live) Recorded() bool { return false }

// cause takes an error out of the wrapping of package os: every Source names the operation and the path once.
func cause(err error) error {
	var inPath *fs.PathError
	var inCall *os.SyscallError
	switch {
	case errors.As(err, &inPath):
		return cause(inPath.Err)
	case errors.As(err, &inCall):
		return inCall.Err
	}
	return err
}

// maxProcesses is how many are looked at; a busy node has a few thousand.
const maxProcesses = 50_000

var errManyProcesses = errors.New("too many processes to look at")

// processSeen reports whether a process of that name is visible in /proc.
func processSeen(name string) (bool, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, err
	}
	seen := 0
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		if seen++; seen > maxProcesses {
			return false, errManyProcesses
		}
		// One that has exited meanwhile does not count.
		if comm, err := os.ReadFile("/proc/" + entry.Name() + "/comm"); err == nil && string(bytes.TrimSuffix(comm, []byte("\n"))) == name {
			return true, nil
		}
	}
	return false, nil
}
