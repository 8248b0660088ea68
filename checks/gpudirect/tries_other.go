//go:build !linux

package gpudirect

import "github.com/gpudoctor/gpudoctor/checks/internal/attempt"

func onlyLinux(Try) attempt.Result { return attempt.NotKnown("it is tried only on Linux") }

func newRegistrar() func(Try) attempt.Result { return onlyLinux }

func newReader() func(Try) attempt.Result { return onlyLinux }
