package checks

import (
	"context"
	"errors"
)

var kernelLogCheck = &Check{
	Name:   "kernel_log",
	Doc:    `kernel_log`,
	Gather: func(context.Context, *Gathering) error { return errors.New("not written yet") },
}
