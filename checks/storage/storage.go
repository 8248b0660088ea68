// Package storage reads the storage of a machine: its NVMe drives and md arrays, and whether GPUDirect Storage (GDS)
// can be used. No file system that is mounted is touched, so that a file server which does not answer blocks nothing.
package storage

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

// Check is the check of the section "storage".
var Check = &gather.Check{Name: section, Gather: collect}

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

// readDrives reads the NVMe controllers (drivers/nvme/host/sysfs.c).
func (r *reader) readDrives(f *facts.StorageFacts) {
	names, err := r.Host.Dir(drives)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // Then the driver is not loaded.
		r.Failed("drives", err)
		return
	}
	f.Drives = []facts.NVMeDrive{}
	for _, name := range matching(names, maxDrives, controller.MatchString) {
		f.Drives = append(f.Drives, r.drive(name))
	}
}

func (r *reader) drive(name string) facts.NVMeDrive {
	dir := path.Join(drives, name)
	text := func(file string) string { return r.Text("drives."+file, path.Join(dir, file)) }
	d := facts.NVMeDrive{Name: name, Model: shown(text("model")), State: oneWord.FindString(text("state"))}
	if address := text("address"); pci.IsAddress(address) { // Of fabrics, it is a network's.
		d.Address = address
	}
	return d
}

func (r *reader) readArrays(f *facts.StorageFacts, names []string) {
	f.Arrays = []facts.RAIDArray{}
	for _, name := range matching(names, maxArrays, arrayName.MatchString) {
		dir := path.Join(disks, name, "md")
		state, err := r.Host.Text(dir + "/array_state")
		if err != nil {
			r.Missing("arrays.state", err) // Without the folder, it is no array.
			continue
		}
		if state = oneWord.FindString(state); state != "clear" { // That of a device without an array.
			f.Arrays = append(f.Arrays, r.array(name, dir, state))
		}
	}
}

func (r *reader) array(name, dir, state string) facts.RAIDArray {
	text := func(file string) string { return r.Text("arrays."+file, path.Join(dir, file)) }
	a := facts.RAIDArray{Name: name, State: state, Level: oneWord.FindString(text("level")), Sync: oneWord.FindString(text("sync_action"))}
	disks, _, _ := strings.Cut(text("raid_disks"), " ") // While it is reshaped: "5 (4)".
	a.Disks, _ = smallNumber(disks)
	if n, ok := smallNumber(text("degraded")); ok {
		a.Degraded = &n
	}
	if percent, ok := progress(text("sync_completed")); ok {
		a.SyncPercent = &percent
	}
	a.Members = r.members(dir)
	return a
}

func (r *reader) members(dir string) []facts.RAIDMember {
	entries, err := r.Host.Dir(dir)
	if err != nil {
		r.Missing("arrays.members", err)
		return nil
	}
	list := []facts.RAIDMember{}
	for _, entry := range matching(entries, maxMembers, func(name string) bool {
		return strings.HasPrefix(name, "dev-") && deviceName.MatchString(name[len("dev-"):])
	}) {
		state := r.Text("arrays.members.state", path.Join(dir, entry, "state"))
		list = append(list, facts.RAIDMember{Device: strings.TrimPrefix(entry, "dev-"), State: memberStates.FindString(state)})
	}
	return list
}
