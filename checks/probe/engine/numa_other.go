//go:build !linux

package engine

import "errors"

func memoryNodes() []int { return nil }

func nodeMemory(int, int) (b []byte, free func(), err error) { return nil, nil, errors.ErrUnsupported }
