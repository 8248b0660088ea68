//go:build !linux

package gpudirect

import "github.com/gpudoctor/gpudoctor/checks/internal/attempt"

func newRegistrar() func(Try) attempt.Result {
	return func(Try) attempt.Result { return attempt.NotKnown("it is tried only on Linux") }
}
