package checks

import (
	"context"
	"errors"
)

var numaCheck = &Check{
	Name:   "numa",
	Doc:    `numa`,
	Gather: func(context.Context, *Gathering) error { return errors.New("not written yet") },
}
