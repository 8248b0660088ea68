//go:build !linux

package network

import "errors"

func flowControlOf(string) (FlowControl, error) { return FlowControl{}, errors.ErrUnsupported }
