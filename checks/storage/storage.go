// Package storage reads the storage of a machine: its NVMe drives and md arrays, and whether GPUDirect Storage (GDS)
// can be used. No file system that is mounted is touched, so that a file server which does not answer blocks nothing.
package storage

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Check is the check of the section "storage".
var Check = &gather.Check{
	Name:   section,
	Gather: collect,
}

const section = "storage"

// The folders of sysfs.
const (
	drives = "/sys/class/nvme"
	disks  = "/sys/block"
)

// Bounds of what is read. The largest servers have 36 drives; a storage node, which mounts drives of
// others, has some hundreds of controllers.
const (
	maxDrives  = 256
	maxArrays  = 64
	maxMembers = 64
)

var errNoBlocks = errors.New("/sys/block is not visible here")

func collect(ctx context.Context, g *gather.Gathering) error {
	r := &reader{gather.Section{Gathering: g, Name: section}}
	names, err := r.Host.Dir(disks)
	_, driveErr := r.Host.Dir(drives)
	switch {
	case errors.Is(err, host.ErrNotRecorded) && errors.Is(driveErr, host.ErrNotRecorded):
		return host.ErrNotRecorded // The recording is older than this check.
	case errors.Is(err, fs.ErrNotExist):
		return errNoBlocks
	case err != nil && !errors.Is(err, host.ErrNotRecorded):
		return err
	}
	f := &facts.StorageFacts{}
	r.readDrives(f)
	if err == nil {
		r.readArrays(f, names)
	}
	f.GDS = r.readGDS(ctx)
	g.Facts.Storage = f
	return nil
}

type reader struct{ gather.Section }

// matching are those of some names that a function accepts, at most so many.
func matching(names []string, most int, accept func(string) bool) []string {
	list := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !accept(name) })
	return list[:min(len(list), most)]
}
