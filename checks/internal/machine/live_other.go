//go:build !linux

package machine

import (
	"errors"
	"io"
	"os"
	"runtime"
)

// readRegular reads at most limit bytes of a regular file.
func readRegular(name string, limit int64, _ []byte) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errIsDir
	case !info.Mode().IsRegular():
		return nil, errIrregular
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // Nothing was written.
	return io.ReadAll(io.LimitReader(f, limit))
}

func openDir(name string) (*os.File, error) { return os.Open(name) }

// uname knows the names that the standard library does.
func uname() (Uname, error) {
	node, err := os.Hostname()
	return Uname{Node: node, Machine: runtime.GOARCH}, err
}

func statfs(string) (Statfs, error) { return Statfs{}, errors.ErrUnsupported }

func owner(string) (Owner, error) { return Owner{}, errors.ErrUnsupported }

func access(string) (string, error) { return "", errors.ErrUnsupported }

func (l *live) limits() (map[string]Limit, error) { return nil, errors.ErrUnsupported }

func readKernelLog() (string, error) { return "", errors.ErrUnsupported }
