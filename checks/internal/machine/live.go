package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
)

const (
	// fileDeadline bounds one operation on a file. On a healthy machine the
	// slowest, a read of PCI config space, takes well under a millisecond.
	fileDeadline = deadline.File
	// maxNames bounds the names in a folder.
	maxNames = 200_000
)

var errTooManyNames = fmt.Errorf("more than %d names", maxNames)

// live is the machine that this process runs on.
type live struct {
	files *pool
	asked asked
}

// Live returns the machine that this process runs on. Each operation on a
// file ends within two seconds, if necessary with ErrSlow. Only regular files
// are read, so none can block: no FIFOs, no devices.
func Live() Source { return &live{files: newPool(fileDeadline)} }

// ReadFile returns at most limit bytes of a file.
func (l *live) ReadFile(name string, limit int64) ([]byte, error) {
	return run(l.files, opRead, name, func(scratch []byte) ([]byte, error) {
		return readRegular(name, limit, scratch)
	})
}

// ReadDir returns the names in a folder, sorted.
func (l *live) ReadDir(name string) ([]string, error) {
	return run(l.files, opList, name, func([]byte) ([]string, error) {
		f, err := openDir(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // Nothing was written.
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

// ReadLink returns where a symbolic link points.
func (l *live) ReadLink(name string) (string, error) {
	return run(l.files, opLink, name, func([]byte) (string, error) { return os.Readlink(name) })
}

// Stat describes a file, links followed.
func (l *live) Stat(name string) (FileInfo, error) {
	return run(l.files, opStat, name, func([]byte) (FileInfo, error) {
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
		by = func(context.Context) (any, error) { return l.answer(splitQuestion(question)) }
	}
	return l.asked.ask(ctx, question, by)
}

// answer answers the questions that this package knows.
func (l *live) answer(name, argument string) (any, error) {
	switch name {
	case AskEnviron:
		return WantedEnviron(os.Environ()), nil
	case AskIDs:
		return currentIDs()
	case AskUname:
		return uname()
	case AskLimits:
		return l.limits()
	case AskKernelLog:
		return readKernelLog()
	case AskStatfs:
		return run(l.files, "statfs", argument, func([]byte) (Statfs, error) { return statfs(argument) })
	case AskLibraryText:
		return run(l.files, opRead, argument, func([]byte) (string, error) { return libraryText(argument) })
	case AskLoaderPaths:
		return run(l.files, opRead, argument, func([]byte) (LoaderPaths, error) { return loaderPathsOf(argument) })
	case AskProcess:
		return run(l.files, opRead, "/proc", func([]byte) (bool, error) { return processSeen(argument) })
	case AskKernelConfig:
		names, err := uname()
		if err != nil {
			return nil, err
		}
		return run(l.files, opRead, "kernel configuration", func([]byte) (KernelConfig, error) { return kernelConfig(names.Release) })
	case AskOwner:
		return run(l.files, opStat, argument, func([]byte) (Owner, error) { return owner(argument) })
	case AskAccess:
		return run(l.files, "access", argument, func([]byte) (string, error) { return access(argument) })
	}
	return nil, fmt.Errorf("%s: %w", name, errors.ErrUnsupported)
}

// Recorded is false: this is the machine itself.
func (l *live) Recorded() bool { return false }

func currentIDs() (IDs, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return IDs{}, fmt.Errorf("read the groups of this process: %w", err)
	}
	slices.Sort(groups)
	groups = append([]int{}, slices.Compact(groups)...) // None is known to be none.
	return IDs{UID: os.Geteuid(), GID: os.Getegid(), Groups: groups}, nil
}

// splitQuestion splits a question from its argument: "statfs:" and "/dev/shm".
func splitQuestion(question string) (name, argument string) {
	if i := strings.IndexByte(question, ':'); i >= 0 {
		return question[:i+1], question[i+1:]
	}
	return question, ""
}

// cause takes an error out of the wrapping that package os gives it: the
// operation and the path are named once, in the same words by every Source.
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
