package checks

import (
	"context"
	"errors"
)

var librariesCheck = &Check{
	Name:   "libraries",
	Doc:    `libraries`,
	Gather: func(context.Context, *Gathering) error { return errors.New("not written yet") },
}
