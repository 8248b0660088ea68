package storage_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/storage"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// text adds a file of sysfs or procfs.
func text(m *host.Memory, name, content string) { m.AddFile(name, []byte(content+"\n")) }

// sda is the link from the number of a partition of a SATA drive to its folder.
const sda = "/sys/dev/block/8:1"

// addDrive adds an NVMe drive with one namespace, as drivers/nvme/host/sysfs.c shows it. With multipath,
// the namespace is that of a subsystem, and the drive is a path to it.
func addDrive(m *host.Memory, n int, multipath bool) {
	name, address := fmt.Sprintf("nvme%d", n), fmt.Sprintf("0000:%02x:00.0", 0x40+n)
	dir := "/sys/devices/pci0000:40/" + address + "/nvme/" + name
	m.AddLink("/sys/class/nvme/"+name, strings.Replace(dir, "/sys", "../..", 1))
	for file, content := range map[string]string{
		"model": "SAMSUNG MZWLO3T8HCLS-00A07              ", "firmware_rev": "OPPA4B5Q", "serial": "S6CKNT0W000001", "transport": "pcie",
		"state": "live", "address": address, "subsysnqn": "nqn.1994-11.com.samsung:nvme:PM1743:S6CKNT0W000001",
	} {
		text(m, dir+"/"+file, content)
	}
	block, number := dir+"/"+name+"n1", fmt.Sprintf("259:%d", 2*n)
	if multipath {
		text(m, dir+"/"+fmt.Sprintf("nvme%dc%dn1/size", n, n), "7501476528")
		block = fmt.Sprintf("/sys/devices/virtual/nvme-subsystem/nvme-subsys%d/%sn1", n, name)
	}
	text(m, block+"/size", "7501476528")
	m.AddDir(block + "/slaves")
	text(m, block+"/"+name+"n1p1/size", "7501474480")
	link := strings.Replace(block, "/sys", "../..", 1)
	m.AddLink("/sys/block/"+name+"n1", strings.Replace(block, "/sys", "..", 1))
	m.AddLink("/sys/class/block/"+name+"n1", link)
	m.AddLink("/sys/dev/block/"+number, link)
	m.AddLink(fmt.Sprintf("/sys/dev/block/259:%d", 2*n+1), link+"/"+name+"n1p1")
}

// addVirtual adds a device that is made of others.
func addVirtual(m *host.Memory, name, number string, slaves ...string) string {
	dir := "/sys/devices/virtual/block/" + name
	m.AddLink("/sys/block/"+name, "../devices/virtual/block/"+name)
	m.AddLink("/sys/class/block/"+name, "../../devices/virtual/block/"+name)
	m.AddLink("/sys/dev/block/"+number, "../../devices/virtual/block/"+name)
	m.AddDir(dir + "/slaves")
	for _, s := range slaves {
		m.AddLink(dir+"/slaves/"+s, "../../"+s)
	}
	return dir
}

func addArray(m *host.Memory, name, number string, files map[string]string, members ...string) {
	dir := addVirtual(m, name, number, members...) + "/md"
	for file, content := range files {
		text(m, dir+"/"+file, content)
	}
	for _, member := range members {
		text(m, dir+"/dev-"+member+"/state", "in_sync")
	}
}

// mounts adds the mounts of a process: lines of mountinfo without their first two fields.
func mounts(m *host.Memory, lines ...string) {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "%d 1 %s\n", i+20, line)
	}
	m.AddFile("/proc/self/mountinfo", []byte(b.String()))
}

// server is a machine with four drives, two of them in a mirror for the system and two in a stripe for data, with
// a file server on each kind of network.
func server() *host.Memory {
	m := &host.Memory{}
	for n := range 4 {
		addDrive(m, n, n == 3)
	}
	addArray(m, "md0", "9:0", map[string]string{
		"level": "raid1", "array_state": "active", "raid_disks": "2", "degraded": "1", "sync_action": "recover", "sync_completed": "1024 / 4096",
	}, "nvme0n1p1", "nvme1n1p1")
	addArray(m, "md1", "9:1", map[string]string{"level": "raid0", "array_state": "clean", "raid_disks": "2"}, "nvme2n1", "nvme3n1")
	addArray(m, "md127", "9:127", map[string]string{"level": "container", "array_state": "inactive", "raid_disks": "0"})
	addArray(m, "md9", "9:9", map[string]string{"array_state": "clear"})
	addVirtual(m, "dm-0", "253:0", "md0")
	m.AddDir("/sys/block/sda/md_unrelated")
	m.AddLink(sda, "../../devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda/sda1")
	mounts(
		m,
		`0:21 / /proc rw - proc proc rw`,
		`253:0 / / rw,relatime - ext4 /dev/mapper/vg-root rw,errors=remount-ro`,
		`9:1 / /data\040of\040jobs rw,noatime - xfs /dev/md1 rw,inode64`,
		`9:1 /part /mnt/part rw - xfs /dev/md1 rw`,
		`259:1 / /boot/efi rw - ext4 /dev/nvme0n1p1 rw`,
		`0:60 / /home ro,relatime - nfs4 filer:/home ro,vers=4.2,proto=rdma,addr=10.0.0.9`,
		`0:61 / /old rw - nfs filer:/old rw,vers=3,proto=tcp,addr=10.0.0.9`,
		`0:62 / /lustre rw - lustre 10.0.0.1@o2ib:10.0.0.2@o2ib:/fs rw`,
		`0:63 / /journal rw - ext4 /dev/nvme2n1p1 rw,data=journal`,
		`8:1 / /sda rw - ext4 /dev/sda1 rw`,
		`8:2 / /sdb rw - ext4 /dev/sda2 rw`,
		`0:64 / /tank rw - zfs tank rw`,
		`0:65 / /weka rw - wekafs backend/fs rw`,
		`0:66 / / rw - overlay overlay rw`,
	)
	m.AddDir("/sys/module/nvidia_fs")
	text(m, "/proc/driver/nvidia-fs/version", "version: 2.28")
	text(m, "/proc/driver/nvidia-fs/modules", "nvme: 4.0\nlnet: 1\nother: 9")
	m.Answer(host.AskEnviron, []string{"CUFILE_VERSION=1.9", "CUFILE_USE_PCIP2PDMA=1", "CUFILE_FORCE_COMPAT_MODE=maybe", "PATH=/bin"})
	m.Answer(storage.AskSettings, storage.Settings{Path: "/etc/cufile.json", Properties: map[string]string{"properties.use_pci_p2pdma": "false", "properties.use_compat_mode": "true", "other": "x"}})
	m.Answer(host.AskKernelConfig, host.KernelConfig{Source: "/boot/config", Options: map[string]string{"CONFIG_PCI_P2PDMA": "y"}})
	return m
}

func TestStorage(t *testing.T) {
	f := checktest.One(t, storage.Check, server())
	drive := func(n int) facts.NVMeDrive {
		return facts.NVMeDrive{
			Name: fmt.Sprintf("nvme%d", n), Model: "SAMSUNG MZWLO3T8HCLS-00A07", Address: fmt.Sprintf("0000:%02x:00.0", 0x40+n), State: "live",
			Namespaces: []facts.NVMeNamespace{{Name: fmt.Sprintf("nvme%dn1", n), SizeBytes: 7501476528 * 512}},
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
		Mounts: []facts.Mount{
			{Path: "/data of jobs", Type: "xfs", Device: "md1", Drives: []string{"nvme2", "nvme3"}},
			{Path: "/home", Type: "nfs4", Network: true, ReadOnly: true},
			{Path: "/journal", Type: "ext4", Device: "nvme2n1p1", Drives: []string{"nvme2"}},
			{Path: "/lustre", Type: "lustre", Network: true},
			{Path: "/old", Type: "nfs", Network: true},
			{Path: "/sda", Type: "ext4", Device: "sda1", Drives: []string{}},
			{Path: "/sdb", Type: "ext4"},
			{Path: "/tank", Type: "zfs"},
			{Path: "/weka", Type: "wekafs", Network: true},
		},
		GDS: &facts.GDS{
			Loaded: new(true), Version: "2.28", Drivers: registered, Config: "/etc/cufile.json", Variables: []string{"CUFILE_FORCE_COMPAT_MODE", "CUFILE_USE_PCIP2PDMA"},
			Properties:   map[string]string{"properties.use_pci_p2pdma": "true", "properties.use_compat_mode": "true"},
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
	bare.AddFile("/proc/self/mountinfo", []byte("21 1 0:21 / /proc rw - proc proc rw\n"))
	bare.Answer(host.AskEnviron, []string{})
	bare.Answer(storage.AskSettings, storage.Settings{})
	f = checktest.One(t, storage.Check, &bare)
	want := &facts.StorageFacts{
		Drives: []facts.NVMeDrive{}, Arrays: []facts.RAIDArray{}, Mounts: []facts.Mount{},
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
			drive + "/state":                        func(f *facts.StorageFacts) bool { return f.Drives[0].State == "" },
			drive + "/nvme0n1/size":                 func(f *facts.StorageFacts) bool { return f.Drives[0].Namespaces[0].SizeBytes == 0 },
			array + "/md/degraded":                  func(f *facts.StorageFacts) bool { return f.Arrays[0].Degraded == nil },
			array + "/md/array_state":               func(f *facts.StorageFacts) bool { return f.Arrays[0].Name == "md1" },
			array + "/md/level":                     func(f *facts.StorageFacts) bool { return f.Arrays[0].Level == "" },
			array + "/md/dev-nvme0n1p1/state":       func(f *facts.StorageFacts) bool { return f.Arrays[0].Members[0].State == "" },
			"/sys/devices/virtual/block/md1/slaves": func(f *facts.StorageFacts) bool { return f.Mounts[0].Drives == nil },
			"/sys/dev/block/8:2": func(f *facts.StorageFacts) bool {
				return f.Mounts[6].Path == "/sdb" && f.Mounts[6].Device == "" && f.Mounts[6].Drives == nil
			},
			"/proc/self/mountinfo":                            func(f *facts.StorageFacts) bool { return f.Mounts == nil },
			"/proc/driver/nvidia-fs/modules":                  func(f *facts.StorageFacts) bool { return f.GDS.Drivers == nil },
			"/proc/driver/nvidia-fs/version":                  func(f *facts.StorageFacts) bool { return f.GDS.Version == "" },
			"/sys/module":                                     func(f *facts.StorageFacts) bool { return f.GDS.Loaded == nil && f.GDS.Drivers == nil },
			"/sys/class/nvme":                                 func(f *facts.StorageFacts) bool { return f.Drives == nil && f.Mounts[0].Drives == nil },
			"/sys/devices/pci0000:40/0000:40:00.0/nvme/nvme0": func(f *facts.StorageFacts) bool { return f.Drives[0].Namespaces == nil },
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

// Devices that are made of each other in a circle, as no kernel shows them, end.
func TestCircle(t *testing.T) {
	m := server()
	addVirtual(m, "dm-1", "253:1", "dm-2", "nvme1n1p1")
	addVirtual(m, "dm-2", "253:2", "dm-1", "dm-2")
	mounts(m, `253:1 / /data rw - xfs /dev/mapper/x rw`)
	got := checktest.One(t, storage.Check, m).Storage.Mounts
	expect.That(t, len(got) == 1 && slices.Equal(got[0].Drives, []string{"nvme1"}), "got %+v", got)
}

// An array that lacks a member lists those that it has.
func TestMissingMember(t *testing.T) {
	m := server()
	addArray(m, "md2", "9:2", map[string]string{"level": "raid5", "array_state": "clean", "raid_disks": "5 (4)", "degraded": "1", "sync_action": "idle", "sync_completed": "none"}, "sda1", "sdb1")
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

// Of a thousand mounts, as many as are read are listed.
func TestManyMounts(t *testing.T) {
	m := server()
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf(`0:%d / /mnt/%04d rw - nfs4 filer:/%d rw,proto=tcp`, i+100, i, i))
	}
	mounts(m, append(lines, `0:5 / /x rw - tmpfs x rw`, `9:1 / /usr/lib/x rw - xfs /dev/md1 rw`)...)
	s := checktest.One(t, storage.Check, m).Storage
	expect.That(t, len(s.Mounts) == 64 && s.Mounts[0].Path == "/mnt/0000", "%d listed", len(s.Mounts))
}

// A file server that does not answer holds nothing up: no mount point is opened.
func TestHungMount(t *testing.T) {
	m := &hung{Memory: server(), below: []string{"/home", "/old", "/lustre", "/weka", "/data of jobs"}}
	start := time.Now()
	f := &facts.Facts{}
	expect.NoError(t, storage.Check.Gather(t.Context(), checktest.On(m, f)))
	expect.That(t, len(m.touched) == 0 && len(f.Storage.Mounts) == 9 && time.Since(start) <= time.Minute, "touched %q, %d mounts", m.touched, len(f.Storage.Mounts))
}

// hung is a machine that notes what is read below some mount points, and which file systems are asked.
type hung struct {
	*host.Memory

	below, touched []string
}

func (h *hung) note(name string) {
	if slices.ContainsFunc(h.below, func(at string) bool { return name == at || strings.HasPrefix(name, at+"/") }) || strings.HasPrefix(name, host.AskStatfs) {
		h.touched = append(h.touched, name)
	}
}

func (h *hung) ReadFile(name string, limit int64) ([]byte, error) {
	h.note(name)
	return h.Memory.ReadFile(name, limit)
}

func (h *hung) ReadDir(name string) ([]string, error) {
	h.note(name)
	return h.Memory.ReadDir(name)
}

func (h *hung) Stat(name string) (host.FileInfo, error) {
	h.note(name)
	return h.Memory.Stat(name)
}

func (h *hung) ReadLink(name string) (string, error) {
	h.note(name)
	return h.Memory.ReadLink(name)
}

func (h *hung) Ask(ctx context.Context, question string, by host.Answerer) (json.RawMessage, error) {
	h.note(question)
	return h.Memory.Ask(ctx, question, by)
}

// FuzzFiles reads what no kernel writes: the facts stay within their bounds.
func FuzzFiles(f *testing.F) {
	f.Add("live", "2", "1024 / 4096", "9:1 / /data rw - xfs /dev/md1 rw", "nvme: 4.0")
	f.Add("\x1b[31m", "-1", "1e308 / 1e-308", `259:0 / /\033\012 rw - ext4 /dev/../x rw,data=`+strings.Repeat("j", 500), ":\x00")
	f.Fuzz(func(t *testing.T, word, number, progress, mount, modules string) {
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
		mounts(m, mount)
		s := checktest.One(t, storage.Check, m).Storage
		bad := func(s string) bool { return len(s) > 4*256 || strings.ContainsAny(s, "\x1b\n\x00") }
		for _, d := range s.Drives {
			expect.That(t, !slices.ContainsFunc([]string{d.Model, d.Address, d.State}, bad), "got %+v", d)
		}
		for _, a := range s.Arrays {
			expect.That(t, !bad(a.Level) && !bad(a.Sync) && a.Disks >= 0 && (a.Degraded == nil || *a.Degraded >= 0) && (a.SyncPercent == nil || *a.SyncPercent >= 0 && *a.SyncPercent <= 100), "got %+v", a)
		}
		for _, o := range s.Mounts {
			expect.That(t, !slices.ContainsFunc([]string{o.Path, o.Type, o.Device}, bad), "got %+v", o)
		}
		expect.That(t, !bad(s.GDS.Version) && len(s.GDS.Drivers) <= 11, "got %+v", s.GDS)
	})
}
