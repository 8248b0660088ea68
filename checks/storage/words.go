package storage

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Names of the kernel: a controller, an array, a block device.
var (
	controller   = lazy.New(`^nvme\d{1,5}$`)
	arrayName    = lazy.New(`^md(?:\d{1,6}|_[\w.-]{1,32})$`)
	deviceName   = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9_.!-]{0,63}$`)
	oneWord      = lazy.New(`^[a-z0-9][a-z0-9_.-]{0,31}$`)
	memberStates = lazy.New(`^[a-z_]{1,24}(?:,[a-z_]{1,24}){0,7}$`)
)

func shown(s string) string {
	return escape.Printable(strings.Join(strings.Fields(s), " "), gather.MaxShown)
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

// gdsVersion is /proc/driver/nvidia-fs/version: "version: 2.17" (nvfs_version_show).
var gdsVersion = lazy.New(`^version: (\d{1,5}\.\d{1,5}(?:\.\d{1,5})?)$`)
