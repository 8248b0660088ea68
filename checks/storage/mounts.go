package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
)

// readMounts reads the file systems that hold data. Their roots come first, so that of several mounts
// of one file system the whole is listed.
func (r *reader) readMounts(f *facts.StorageFacts) {
	all, err := container.ReadMounts(r.Host)
	if err != nil {
		r.Failed("mounts", err)
		return
	}
	f.Mounts = []facts.Mount{}
	seen := make(map[string]bool)
	for _, m := range inSight(all) {
		key := fmt.Sprintf("%d:%d %s", m.Major, m.Minor, m.FSType)
		if len(f.Mounts) == maxMounts || seen[key] || isSystem(m.Mountpoint) {
			f.MountsLeft++
			continue
		}
		seen[key] = true
		f.Mounts = append(f.Mounts, r.mount(m, f.Drives))
	}
	slices.SortStableFunc(f.Mounts, func(a, b facts.Mount) int { return cmp.Compare(a.Path, b.Path) })
}

// inSight are the mounts of data that no later one hides, the roots of file systems first.
func inSight(all []*container.Mount) []*container.Mount {
	last := make(map[string]*container.Mount, len(all))
	for _, m := range all {
		last[m.Mountpoint] = m
	}
	var roots, parts []*container.Mount
	for _, m := range all {
		switch {
		case last[m.Mountpoint] != m || !holdsData(m.FSType):
		case m.Root == "/":
			roots = append(roots, m)
		default:
			parts = append(parts, m)
		}
	}
	return append(roots, parts...)
}

func (r *reader) mount(m *container.Mount, drives []facts.NVMeDrive) facts.Mount {
	o := facts.Mount{
		Path: escape.Printable(m.Mountpoint, gather.MaxShown), Type: escape.Printable(m.FSType, gather.MaxShown),
		ReadOnly: m.ReadOnly(),
	}
	if o.Network = isNetwork(m.FSType); o.Network {
		o.Export, o.Protocol = escape.Printable(m.Source, gather.MaxShown), protocol(m)
		return o
	}
	o.Device = r.device(m)
	if o.Device != "" {
		o.Drives = r.drivesBelow(o.Device, drives)
	}
	return o
}

// device is the block device of a mount. File systems that span several devices (btrfs) have a number of
// their own; their source names one device.
func (r *reader) device(m *container.Mount) string {
	name := ""
	if m.Major == 0 {
		name = path.Base(m.Source)
		if path.Dir(m.Source) != "/dev" {
			return ""
		}
	} else if target, err := r.Host.Link(fmt.Sprintf("%s/%d:%d", numbers, m.Major, m.Minor)); err != nil {
		r.Missing("mounts.device", err)
	} else {
		name = path.Base(target)
	}
	if !deviceName.MatchString(name) {
		return ""
	}
	return name
}

// drivesBelow are the controllers whose namespaces a block device is made of, nil if that is not known.
func (r *reader) drivesBelow(device string, drives []facts.NVMeDrive) []string {
	names, known := r.namespacesBelow(device)
	if !known || drives == nil {
		return nil
	}
	list := []string{}
	for _, d := range drives {
		if slices.ContainsFunc(d.Namespaces, func(n facts.NVMeNamespace) bool { return slices.Contains(names, n.Name) }) {
			list = append(list, d.Name)
		}
	}
	return list
}

// namespacesBelow follows the devices that a device is made of. Each is visited once, so that a circle ends. It reports
// false if not all could be read.
func (r *reader) namespacesBelow(device string) (names []string, known bool) {
	known = true
	queue, visited := []string{device}, map[string]bool{device: true}
	for len(queue) > 0 {
		name := wholeDevice(queue[0])
		queue = queue[1:]
		if namespace.MatchString(name) {
			names = append(names, plainNamespace(name))
			continue
		}
		if plainDisk.MatchString(name) {
			continue
		}
		slaves, err := r.Host.Dir(path.Join(blocks, name, "slaves"))
		if err != nil {
			r.Missing("mounts.drives", err)
			known = known && errors.Is(err, fs.ErrNotExist)
		}
		for _, slave := range slaves {
			if deviceName.MatchString(slave) && !visited[slave] && len(visited) < maxBelow {
				visited[slave] = true
				queue = append(queue, slave)
			}
		}
	}
	return names, known
}
