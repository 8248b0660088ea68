//go:build !linux

package host

import (
	"errors"
	"os"
	"runtime"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

func uname() (Uname, error) {
	node, err := os.Hostname()
	return Uname{Node: node, Machine: runtime.GOARCH}, err
}

func clock() (facts.Clock, error) { return facts.Clock{}, errors.ErrUnsupported }

func statfs(string) (Statfs, error) { return Statfs{}, errors.ErrUnsupported }

func access(string) (string, error) { return "", errors.ErrUnsupported }

func (l *live) limits() (map[string]Limit, error) { return nil, errors.ErrUnsupported }

func readKernelLog() (string, error) { return "", errors.ErrUnsupported }
