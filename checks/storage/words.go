package storage

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Names of the kernel: a controller; a namespace, which with multipath names the controller as well
// (drivers/nvme/host/core.c, nvme_alloc_ns); a partition of a namespace or of an array; a block device.
var (
	controller = lazy.New(`^nvme\d{1,5}$`)
	namespace  = lazy.New(`^(nvme\d{1,5})(?:c\d{1,5})?(n\d{1,5})$`)
	partition  = lazy.New(`^(nvme\d{1,5}n\d{1,5}|md\d{1,6}|md_[\w.-]{1,32})p\d{1,3}$`)
	arrayName  = lazy.New(`^md(?:\d{1,6}|_[\w.-]{1,32})$`)
	deviceName = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.!-]{0,63}$`)
	// plainDisk is a device that is not made of others.
	plainDisk    = lazy.New(`^(?:sd|vd|xvd|hd|mmcblk|loop|zram|ram|sr|pmem|nbd)\w*$`)
	oneWord      = lazy.New(`^[a-z0-9][a-z0-9_.-]{0,31}$`)
	memberStates = lazy.New(`^[a-z_]{1,24}(?:,[a-z_]{1,24}){0,7}$`)
)

// plainNamespace is the name that programs use: without the controller, if it is one way of several.
func plainNamespace(name string) string { return namespace.ReplaceAllString(name, "$1$2") }

// wholeDevice is the device that a partition belongs to.
func wholeDevice(name string) string { return partition.ReplaceAllString(name, "$1") }

func shown(s string) string {
	return escape.Printable(strings.Join(strings.Fields(s), " "), gather.MaxShown)
}

// bytesOf turns sectors of sysfs, which have 512 bytes whatever the device has, into bytes.
func bytesOf(sectors int64) int64 {
	if sectors < 0 || sectors > 1<<53 {
		return 0
	}
	return sectors * 512
}

func smallNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 4096 {
		return 0, false
	}
	return n, true
}

// progress reads sync_completed, "1024 / 4096" or "none", in percent.
func progress(s string) (float64, bool) {
	done, all, ok := strings.Cut(s, " / ")
	if !ok {
		return 0, false
	}
	a, err := facts.ParseFloat(strings.TrimSpace(done))
	b, err2 := facts.ParseFloat(strings.TrimSpace(all))
	if err != nil || err2 != nil || a < 0 || b <= 0 || a > b {
		return 0, false
	}
	return float64(int(a/b*1000)) / 10, true
}

// local and network are the file systems that hold data.
var (
	local   = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "jfs", "reiserfs", "ocfs2", "gfs2"}
	network = []string{
		"nfs", "nfs4", "lustre", "wekafs", "beegfs", "beegfs_nodev", "gpfs", "ceph", "fuse.ceph", "glusterfs", "fuse.glusterfs", "cifs", "smb3",
		"9p", "virtiofs", "fuse.juicefs", "fuse.JuiceFS", "fuse.gcsfuse", "fuse.s3fs", "fuse.mount-s3", "fuse.mountpoint-s3", "fuse.blobfuse", "fuse.blobfuse2",
		"fuse.goofys", "fuse.rclone", "fuse.sshfs", "orangefs", "pvfs2", "panfs", "scatefs",
	}
)

func holdsData(fsType string) bool { return slices.Contains(local, fsType) || isNetwork(fsType) }

func isNetwork(fsType string) bool { return slices.Contains(network, fsType) }

// systemFolders hold no data of jobs: what is mounted there belongs to the system, or is a part of the
// host's file system in a container.
var systemFolders = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/nix", "/proc", "/run", "/sbin", "/snap", "/sys", "/usr",
	"/var/lib/containerd", "/var/lib/containers", "/var/lib/docker", "/var/lib/kubelet", "/var/lib/rancher", "/var/snap",
}

func isSystem(at string) bool {
	return slices.ContainsFunc(systemFolders, func(f string) bool { return at == f || strings.HasPrefix(at, f+"/") })
}

func option(options, name string) string {
	for o := range strings.SplitSeq(options, ",") {
		if value, ok := strings.CutPrefix(o, name+"="); ok {
			return value
		}
	}
	return ""
}

// protocol is how a client reaches its file server: the option proto of NFS (nfs(5): rdma6 and tcp6 are
// those over IPv6), and the network in the source of Lustre (o2ib is RDMA).
func protocol(m *container.Mount) string {
	switch m.FSType {
	case "nfs", "nfs4":
		switch option(m.VFSOptions, "proto") {
		case "rdma", "rdma6":
			return "rdma"
		case "tcp", "tcp6":
			return "tcp"
		}
	case "lustre":
		switch {
		case strings.Contains(m.Source, "@o2ib"):
			return "rdma"
		case strings.Contains(m.Source, "@tcp"):
			return "tcp"
		}
	}
	return ""
}

// gdsDrivers are the drivers that register with nvidia_fs, by the names of its file modules
// (gds-nvidia-fs src/nvfs-dma.h, NVFS_PROC_MOD_*), as gdscheck calls them.
var gdsDrivers = map[string]string{
	"nvme": "NVMe", "nvme_rdma": "NVMeOF", "scsi_mod": "SCSI", "sfxvdriver": "ScaleFlux CSD", "nvmeib_common": "NVMesh", "lnet": "DDN EXAScaler",
	"mmfslinux": "IBM Spectrum Scale", "rpcrdma": "NFS", "beegfs": "BeeGFS", "wekafsio": "WekaFS", "scatefs": "ScaTeFS",
}

// parseModules reads /proc/driver/nvidia-fs/modules: "nvme: 4.0", a line for each driver that is
// registered (gds-nvidia-fs src/nvfs-proc.c, nvfs_modules_show).
func parseModules(b []byte) map[string]string {
	drivers := make(map[string]string, len(gdsDrivers))
	for _, name := range gdsDrivers {
		drivers[name] = "unsupported"
	}
	for line := range bytes.Lines(b) {
		name, _, _ := strings.Cut(string(line), ":")
		if known := gdsDrivers[strings.TrimSpace(name)]; known != "" {
			drivers[known] = "supported"
		}
	}
	return drivers
}

var gdsVersion = lazy.New(`^version: (\d{1,5}\.\d{1,5}(?:\.\d{1,5})?)$`)

// parseVersion reads /proc/driver/nvidia-fs/version: "version: 2.17" (nvfs_version_show).
func parseVersion(s string) string {
	if m := gdsVersion.FindStringSubmatch(strings.TrimSpace(s)); m != nil {
		return m[1]
	}
	return ""
}
