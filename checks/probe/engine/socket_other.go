//go:build !linux

package engine

import (
	"errors"
	"os"
)

func socketPair() (ours, theirs *os.File, err error) { return nil, nil, errors.ErrUnsupported }
func sendFile(*os.File, int) error                   { return errors.ErrUnsupported }
func receiveFile(*os.File) (int, error)              { return -1, errors.ErrUnsupported }
func closeFile(int)                                  {}
