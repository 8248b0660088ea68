package storage

import (
	"errors"
	"io/fs"
	"path"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/pci"
)

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
