//go:build !linux

package direct

import "github.com/gpudoctor/gpudoctor/checks/internal/attempt"

func onlyLinux(Try) attempt.Result { return unknown("it is tried only on Linux") }

func newRegistrar() func(Try) attempt.Result { return onlyLinux }

func newReader() func(Try) attempt.Result { return onlyLinux }
