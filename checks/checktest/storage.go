package checktest

import "github.com/gpudoctor/gpudoctor/checks/host"

// WriteStorage writes what the kernel shows of the storage of a machine that starts from a SATA drive and has
// no other, and the mounts of a process there.
func WriteStorage(files *host.Memory) {
	const drive = "devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda"
	files.AddFile("/sys/"+drive+"/size", []byte("3750748848\n"))
	files.AddLink("/sys/block/sda", "../"+drive)
	files.AddFile("/proc/self/mountinfo", []byte("22 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw\n24 22 0:22 / /sys rw,nosuid - sysfs sysfs rw\n25 22 0:24 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n"))
}
