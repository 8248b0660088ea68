package checks

import (
	"context"
	"errors"
)

var linksCheck = &Check{
	Name:   "links",
	Doc:    `links`,
	After:  []string{"pci", "numa", "gpus"},
	Gather: func(context.Context, *Gathering) error { return errors.New("not written yet") },
}
