package checks

import (
	"context"
	"errors"
)

var iommuCheck = &Check{
	Name:   "iommu",
	Doc:    `iommu`,
	After:  []string{"pci"},
	Gather: func(context.Context, *Gathering) error { return errors.New("not written yet") },
}
