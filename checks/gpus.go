package checks

import (
	"context"
	"errors"
)

var gpusCheck = &Check{
	Name:   "gpus",
	Doc:    `gpus`,
	After:  []string{"pci"},
	Gather: func(context.Context, *Gathering) error { return errors.New("not written yet") },
}
