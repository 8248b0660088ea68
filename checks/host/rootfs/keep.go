package rootfs

import (
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/pci"
)

// The names right below sys or proc by which a copy of it is recognized (Linux Documentation/ABI and proc(5)).
var (
	sysFolders  = []string{"block", "bus", "class", "dev", "devices", "firmware", "fs", "hypervisor", "kernel", "module", "power"}
	procEntries = []string{
		"bus", "cgroups", "cmdline", "config.gz", "cpuinfo", "devices", "device-tree", "driver", "hwloc-nofile-info", "interrupts", "iomem", "ioports", "loadavg", "meminfo", "modules", "mounts", "net",
		"partitions", "self", "stat", "swaps", "sys", "uptime", "version", "vmstat", "xen", "zoneinfo",
	}
)

// Split tells whether a file is part of a copy of /sys or /proc: root is the folder in which that copy is, and at is where the
// file is on the machine.
func Split(name string) (root, at string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(path.Clean("/"+name), "/"), "/")
	for i := range len(parts) - 1 {
		next := parts[i+1]
		known := false
		switch parts[i] {
		case "sys":
			known = slices.Contains(sysFolders, next)
		case "proc":
			known = slices.Contains(procEntries, next) || isNumber(next)
		case "dev":
			known = next == "cpuset" // Where the control groups of old were mounted.
		}
		if known {
			return path.Join(parts[:i]...), "/" + path.Join(parts[i:]...), true
		}
	}
	return "", "", false
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// IsText reports whether a file of /proc is read as a text: a kind reads it, and no check.
func IsText(at string) bool {
	return at == "/proc/config.gz" || strings.HasPrefix(at, "/proc/net/bonding/")
}

var keptFolders = []string{
	"/proc/driver/nvidia", "/proc/driver/nvidia-fs", "/proc/self", "/proc/sys/kernel", "/proc/xen",
	"/sys/bus/mdev/devices", "/sys/bus/pci/drivers",
	"/sys/block", "/sys/class/dmi", "/sys/class/infiniband", "/sys/class/iommu", "/sys/class/kfd", "/sys/class/net", "/sys/class/nvme",
	"/sys/devices/system/clocksource", "/sys/devices/system/node",
	"/sys/devices/virtual/block", "/sys/devices/virtual/dmi", "/sys/devices/virtual/iommu", "/sys/devices/virtual/kfd", "/sys/devices/virtual/net",
	"/sys/devices/virtual/nvme-fabrics", "/sys/devices/virtual/nvme-subsystem",
	"/sys/hypervisor", "/sys/kernel/iommu_groups",
}

var keptFiles = []string{
	"/proc/1/cgroup", "/proc/1/comm", "/proc/2/comm", "/proc/cmdline", "/proc/cpuinfo", "/proc/meminfo", "/proc/modules", "/proc/uptime", "/proc/version",
}

// pciFolders are the folders in that of a PCI function of which everything is kept.
var pciFolders = []string{"infiniband", "net", "nvme", "ras", "xgmi_hive_info"}

// bulk are names that no check reads and of which there are many: in each folder of a device, or for each processor.
func bulk(name string) bool {
	switch name {
	case "firmware_node", "hugepages", "hwmon", "integrity", "local_cpus", "mq", "msi_irqs", "of_node", "power", "queue", "queues", "rom", "statistics", "subsystem", "uevent", "wakeup":
		return true
	}
	for _, prefix := range []string{"cpu", "memory", "resource"} {
		if number, ok := strings.CutPrefix(name, prefix); ok {
			number, _, _ = strings.Cut(number, "_")
			if isNumber(number) {
				return true // cpu12, memory48, resource1_wc.
			}
		}
	}
	return false
}

// maxDepth bounds how far a path is from the root: those that checks read have at most 20 parts.
const maxDepth = 64

// Keeps reports whether checks may read a file, or the link or folder of that name.
func Keeps(at string) bool {
	parts := strings.Split(at, "/")
	if n := len(parts); n > 3 && parts[n-1] == "uevent" && parts[n-3] == "net" {
		parts = parts[:n-1] // It tells what kind of interface it is.
		at = strings.Join(parts, "/")
	}
	switch {
	case slices.Contains(keptFiles, at):
		return true
	case len(parts) > maxDepth, slices.ContainsFunc(parts, bulk):
		return false
	case slices.ContainsFunc(keptFolders, func(f string) bool { return at == f || strings.HasPrefix(at, f+"/") }):
		return true
	case strings.HasPrefix(at, "/sys/module/"):
		return len(parts) == 4 || parts[4] == "parameters" || parts[4] == "version"
	case strings.HasPrefix(at, "/sys/devices/"), strings.HasPrefix(at, pci.Devices+"/"):
		return keepsOfPCI(parts)
	}
	return at == pci.Devices
}

func keepsOfPCI(parts []string) bool {
	for i, part := range slices.Backward(parts) {
		if pci.IsAddress(part) {
			below := parts[i+1:]
			return len(below) < 2 || slices.Contains(pciFolders, below[0])
		}
	}
	return false
}

// Prunes reports whether nothing in a folder is kept, so that it need not be listed.
func Prunes(at string) bool {
	if Keeps(at) {
		return false
	}
	parts := strings.Split(at, "/")
	if len(parts) > maxDepth || slices.ContainsFunc(parts, bulk) {
		return true
	}
	above := func(name string) bool { return strings.HasPrefix(name, at+"/") }
	switch {
	case slices.ContainsFunc(keptFolders, above), slices.ContainsFunc(keptFiles, above), at == "/sys/module", above(pci.Devices), at == "/proc/net", IsText(at + "/"):
		return false
	case at == "/sys/devices", strings.HasPrefix(at, "/sys/devices/") && !strings.HasPrefix(at, "/sys/devices/system/") && !strings.HasPrefix(at, "/sys/devices/virtual/"):
		// A root bus can be below the device of a platform.
		return slices.ContainsFunc(parts, pci.IsAddress)
	}
	return true
}
