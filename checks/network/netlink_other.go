//go:build !linux

package network

import "errors"

func addresses() (map[string][]string, error) { return nil, errors.ErrUnsupported }

func flowControlOf(string) (FlowControl, error) { return FlowControl{}, errors.ErrUnsupported }
