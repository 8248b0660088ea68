//go:build !linux

package netlink

import "errors"

func addresses() (map[string][]string, error) { return nil, errors.ErrUnsupported }

func flowControl(string) (FlowControl, error) { return FlowControl{}, errors.ErrUnsupported }
