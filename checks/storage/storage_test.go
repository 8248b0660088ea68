package storage_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/storage"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// text adds a file of sysfs or procfs.
func text(m *host.Memory, name, content string) { m.AddFile(name, []byte(content+"\n")) }

// addDrive adds an NVMe drive, as drivers/nvme/host/sysfs.c shows it.
func addDrive(m *host.Memory, n int) {
	name, address := fmt.Sprintf("nvme%d", n), fmt.Sprintf("0000:%02x:00.0", 0x40+n)
	dir := "/sys/devices/pci0000:40/" + address + "/nvme/" + name
	m.AddLink("/sys/class/nvme/"+name, strings.Replace(dir, "/sys", "../..", 1))
	for file, content := range map[string]string{
		"model": "SAMSUNG MZWLO3T8HCLS-00A07              ", "firmware_rev": "OPPA4B5Q", "serial": "S6CKNT0W000001", "transport": "pcie",
		"state": "live", "address": address, "subsysnqn": "nqn.1994-11.com.samsung:nvme:PM1743:S6CKNT0W000001",
	} {
		text(m, dir+"/"+file, content)
	}
}

func addArray(m *host.Memory, name string, files map[string]string, members ...string) {
	dir := "/sys/devices/virtual/block/" + name + "/md"
	m.AddLink("/sys/block/"+name, "../devices/virtual/block/"+name)
	for file, content := range files {
		text(m, dir+"/"+file, content)
	}
	for _, member := range members {
		text(m, dir+"/dev-"+member+"/state", "in_sync")
	}
}

// server is a machine with four drives, two of them in a mirror for the system and two in a stripe for data.
func server() *host.Memory {
	m := &host.Memory{}
	for n := range 4 {
		addDrive(m, n)
	}
	addArray(m, "md0", map[string]string{
		"level": "raid1", "array_state": "active", "raid_disks": "2", "degraded": "1", "sync_action": "recover", "sync_completed": "1024 / 4096",
	}, "nvme0n1p1", "nvme1n1p1")
	addArray(m, "md1", map[string]string{"level": "raid0", "array_state": "clean", "raid_disks": "2"}, "nvme2n1", "nvme3n1")
	addArray(m, "md127", map[string]string{"level": "container", "array_state": "inactive", "raid_disks": "0"})
	addArray(m, "md9", map[string]string{"array_state": "clear"})
	m.AddDir("/sys/block/sda/md_unrelated")
	m.AddDir("/sys/module/nvidia_fs")
	text(m, "/proc/driver/nvidia-fs/version", "version: 2.28")
	text(m, "/proc/driver/nvidia-fs/modules", "nvme: 4.0\nlnet: 1\nother: 9")
	m.Answer(host.AskEnviron, []string{"CUFILE_VERSION=1.9", "CUFILE_USE_PCIP2PDMA=1", "CUFILE_FORCE_COMPAT_MODE=maybe", "PATH=/bin"})
	m.Answer(storage.AskSettings, storage.Settings{Path: "/etc/cufile.json", Properties: map[string]string{"properties.use_pci_p2pdma": "false", "other": "x"}})
	m.Answer(host.AskKernelConfig, host.KernelConfig{Source: "/boot/config", Options: map[string]string{"CONFIG_PCI_P2PDMA": "y"}})
	return m
}

func TestStorage(t *testing.T) {
	f := checktest.One(t, storage.Check, server())
	drive := func(n int) facts.NVMeDrive {
		return facts.NVMeDrive{
			Name: fmt.Sprintf("nvme%d", n), Model: "SAMSUNG MZWLO3T8HCLS-00A07", Address: fmt.Sprintf("0000:%02x:00.0", 0x40+n), State: "live",
		}
	}
	member := func(name string) facts.RAIDMember { return facts.RAIDMember{Device: name, State: "in_sync"} }
	unsupported := []string{"NVMeOF", "SCSI", "ScaleFlux CSD", "NVMesh", "IBM Spectrum Scale", "NFS", "BeeGFS", "WekaFS", "ScaTeFS"}
	registered := map[string]string{"NVMe": "supported", "DDN EXAScaler": "supported"}
	for _, name := range unsupported {
		registered[name] = "unsupported"
	}
	expect.NoDiff(t, &facts.StorageFacts{
		Drives: []facts.NVMeDrive{drive(0), drive(1), drive(2), drive(3)},
		Arrays: []facts.RAIDArray{
			{Name: "md0", Level: "raid1", State: "active", Disks: 2, Degraded: new(1), Sync: "recover", SyncPercent: new(25.0), Members: []facts.RAIDMember{member("nvme0n1p1"), member("nvme1n1p1")}},
			{Name: "md1", Level: "raid0", State: "clean", Disks: 2, Members: []facts.RAIDMember{member("nvme2n1"), member("nvme3n1")}},
			{Name: "md127", Level: "container", State: "inactive", Members: []facts.RAIDMember{}},
		},
		GDS: &facts.GDS{
			Loaded: new(true), Version: "2.28", Drivers: registered, Config: "/etc/cufile.json", Variables: []string{"CUFILE_FORCE_COMPAT_MODE", "CUFILE_USE_PCIP2PDMA"},
			Properties:   map[string]string{"properties.use_pci_p2pdma": "true"},
			KernelP2PDMA: new(true), Source: "/proc/driver/nvidia-fs",
		},
	}, f.Storage, "storage")
	expect.Len(t, 0, checktest.UnknownOf(f, "storage"), "unknown")
}

// Without /sys nothing is known, and the reason is; on a machine without any of it, it is known that there is
// none. A recording that is older than the check lacks the section, and nothing else is said.
func TestNothing(t *testing.T) {
	var masked host.Memory
	f := checktest.One(t, storage.Check, &masked)
	got := checktest.UnknownOf(f, "storage")
	expect.That(t, f.Storage == nil && slices.Equal(got, []string{": /sys/block is not visible here"}), "masked: %+v, unknown %q", f.Storage, got)
	var bare host.Memory
	bare.AddDir("/sys/block")
	bare.AddDir("/sys/module")
	bare.Answer(host.AskEnviron, []string{})
	bare.Answer(storage.AskSettings, storage.Settings{})
	f = checktest.One(t, storage.Check, &bare)
	want := &facts.StorageFacts{
		Drives: []facts.NVMeDrive{}, Arrays: []facts.RAIDArray{},
		GDS: &facts.GDS{Loaded: new(false), Properties: map[string]string{}, Source: "/proc/driver/nvidia-fs"},
	}
	expect.NoDiff(t, want, f.Storage, "bare")
	expect.Len(t, 0, f.Unknown, "bare: unknown")
	var old host.Memory
	for _, folder := range []string{"/sys/block", "/sys/class/nvme"} {
		old.AddError(folder, host.ErrNotRecorded)
	}
	f = checktest.One(t, storage.Check, &old)
	got = checktest.UnknownOf(f, "storage")
	expect.That(t, f.Storage == nil && slices.Equal(got, []string{": not recorded"}), "an old recording: %+v, unknown %q", f.Storage, got)
}

// Each file that fails leaves its own fact unknown, and never becomes a value.
func TestUnreadable(t *testing.T) {
	const drive, array = "/sys/devices/pci0000:40/0000:40:00.0/nvme/nvme0", "/sys/devices/virtual/block/md0"
	for _, failure := range []error{syscall.EIO, host.ErrSlow, fs.ErrPermission} {
		for at, check := range map[string]func(f *facts.StorageFacts) bool{
			drive + "/state":                  func(f *facts.StorageFacts) bool { return f.Drives[0].State == "" },
			array + "/md/degraded":            func(f *facts.StorageFacts) bool { return f.Arrays[0].Degraded == nil },
			array + "/md/array_state":         func(f *facts.StorageFacts) bool { return f.Arrays[0].Name == "md1" },
			array + "/md/level":               func(f *facts.StorageFacts) bool { return f.Arrays[0].Level == "" },
			array + "/md/dev-nvme0n1p1/state": func(f *facts.StorageFacts) bool { return f.Arrays[0].Members[0].State == "" },
			"/proc/driver/nvidia-fs/modules":  func(f *facts.StorageFacts) bool { return f.GDS.Drivers == nil },
			"/proc/driver/nvidia-fs/version":  func(f *facts.StorageFacts) bool { return f.GDS.Version == "" },
			"/sys/module":                     func(f *facts.StorageFacts) bool { return f.GDS.Loaded == nil && f.GDS.Drivers == nil },
			"/sys/class/nvme":                 func(f *facts.StorageFacts) bool { return f.Drives == nil },
		} {
			m := server()
			m.AddError(at, failure)
			f := checktest.One(t, storage.Check, m)
			expect.That(t, f.Storage != nil && check(f.Storage), "%s: %v: %+v", at, failure, f.Storage)
			expect.That(t, len(checktest.UnknownOf(f, "storage")) > 0, "%s: %v: no reason is given", at, failure)
		}
	}
}

// Settings that cannot be read are unknown: they are not the defaults.
func TestSettingsUnknown(t *testing.T) {
	m := server()
	m.AnswerError(storage.AskSettings, errors.New("read /etc/cufile.json: not JSON"))
	f := checktest.One(t, storage.Check, m)
	if f.Storage.GDS.Properties != nil || f.Storage.GDS.KernelP2PDMA != nil || !slices.Equal(checktest.UnknownOf(f, "storage"), []string{"gds.properties: read /etc/cufile.json: not JSON"}) {
		t.Errorf("got %+v, unknown %q", f.Storage.GDS, checktest.UnknownOf(f, "storage"))
	}
}

// An array that lacks a member lists those that it has.
func TestMissingMember(t *testing.T) {
	m := server()
	addArray(m, "md2", map[string]string{"level": "raid5", "array_state": "clean", "raid_disks": "5 (4)", "degraded": "1", "sync_action": "idle", "sync_completed": "none"}, "sda1", "sdb1")
	text(m, "/sys/devices/virtual/block/md2/md/dev-sdb1/state", "faulty,write_error")
	f := checktest.One(t, storage.Check, m)
	i := slices.IndexFunc(f.Storage.Arrays, func(a facts.RAIDArray) bool { return a.Name == "md2" })
	want := facts.RAIDArray{
		Name: "md2", Level: "raid5", State: "clean", Disks: 5, Degraded: new(1), Sync: "idle",
		Members: []facts.RAIDMember{{Device: "sda1", State: "in_sync"}, {Device: "sdb1", State: "faulty,write_error"}},
	}
	expect.Must(t, i >= 0, "not listed: %+v", f.Storage.Arrays)
	expect.NoDiff(t, want, f.Storage.Arrays[i], "it")
}

// FuzzFiles reads what no kernel writes: the facts stay within their bounds.
func FuzzFiles(f *testing.F) {
	f.Add("live", "2", "1024 / 4096", "nvme: 4.0")
	f.Add("\x1b[31m", "-1", "1e308 / 1e-308", ":\x00")
	f.Fuzz(func(t *testing.T, word, number, progress, modules string) {
		m := server()
		for _, file := range []string{"state", "transport", "model", "firmware_rev", "address"} {
			text(m, "/sys/devices/pci0000:40/0000:40:00.0/nvme/nvme0/"+file, word)
		}
		for _, file := range []string{"level", "sync_action", "dev-nvme0n1p1/state"} {
			text(m, "/sys/devices/virtual/block/md0/md/"+file, word)
		}
		for _, file := range []string{"raid_disks", "degraded"} {
			text(m, "/sys/devices/virtual/block/md0/md/"+file, number)
		}
		text(m, "/sys/devices/virtual/block/md0/md/sync_completed", progress)
		text(m, "/proc/driver/nvidia-fs/modules", modules)
		text(m, "/proc/driver/nvidia-fs/version", word)
		s := checktest.One(t, storage.Check, m).Storage
		bad := func(s string) bool { return len(s) > 4*256 || strings.ContainsAny(s, "\x1b\n\x00") }
		for _, d := range s.Drives {
			expect.That(t, !slices.ContainsFunc([]string{d.Model, d.Address, d.State}, bad), "got %+v", d)
		}
		for _, a := range s.Arrays {
			expect.That(t, !bad(a.Level) && !bad(a.Sync) && a.Disks >= 0 && (a.Degraded == nil || *a.Degraded >= 0) && (a.SyncPercent == nil || *a.SyncPercent >= 0 && *a.SyncPercent <= 100), "got %+v", a)
		}
		expect.That(t, !bad(s.GDS.Version) && len(s.GDS.Drivers) <= 11, "got %+v", s.GDS)
	})
}
