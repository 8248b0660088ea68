//go:build !linux

package gpudirect

import "github.com/gpudoctor/gpudoctor/checks/internal/attempt"

func onlyLinux(order) attempt.Result { return attempt.NotKnown("it is tried only on Linux") }

func newRegistrar() func(order) attempt.Result { return onlyLinux }

func newReader() func(order) attempt.Result { return onlyLinux }
