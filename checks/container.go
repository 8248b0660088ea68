package checks

import (
	"context"
	"errors"
)

var containerCheck = &Check{
	Name:   "container",
	Doc:    `container`,
	After:  []string{"pci"},
	Gather: func(context.Context, *Gathering) error { return errors.New("not written yet") },
}
